// Package bench runs the benchmarks of the series, with upstream's code in the
// same run, and writes the report.
package bench
