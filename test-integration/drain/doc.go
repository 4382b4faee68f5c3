// Package drain measures what it costs not to trust published capacity, with a driver
// that publishes late: how long it takes to find a node for a queue of pods, how long
// a pod waits beside free room while others come and go, and how many of the decisions
// were wrong. Upstream's code, and the policies of the series, run on the same control
// plane and driver.
//
// make bench runs it and writes the report.
package drain
