// Package drain measures what it costs not to trust published capacity: how long
// it takes to find a node for a queue of pods, and how many of the decisions were
// wrong, with a driver that publishes late. Upstream's code, and both policies of
// the series, run on the same control plane and driver.
//
// make bench runs it and writes the report.
package drain
