// Promcheck checks the Prometheus rules and the Grafana dashboard of a folder: the rules as
// promtool does, with their tests, and all queries against metrics of real components.
//
//	promcheck FOLDER SCRAPES
//
// SCRAPES is a folder with a file MOMENT-JOB.txt for each time that a component was asked for its
// metrics. Moments are numbers, and half a minute apart for the queries.
//
// It is a Go module of its own, outside go.work: Prometheus requires later versions of modules
// with which the tests of components would not run what the components run. It uses only the
// parser and the engine of Prometheus. Promtool itself has ten times as many packages.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: promcheck FOLDER SCRAPES")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
