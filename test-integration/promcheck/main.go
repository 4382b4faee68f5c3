// Promcheck checks the queries of the Prometheus rules and of the Grafana dashboard of a folder against metrics of real
// components, or draws the dashboard. The tests of the rules are for promtool, in make lint.
//
//	promcheck FOLDER SCRAPES
//	promcheck -draw PICTURE.svg FOLDER SCRAPES
//
// SCRAPES is a folder with a file SECONDS-JOB.txt, or SECONDS-JOB@INSTANCE.txt, for each time that a
// component was asked for its metrics, and a file SECONDS.fault for each fault that a picture marks, with
// what was done. The queries of a check take half a minute between two times, those of a picture look at
// twenty seconds.
//
// It is a Go module of its own, outside go.work: Prometheus requires later versions of modules
// with which the tests of components would not run what the components run.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	picture := flag.String("draw", "", "write a picture of the dashboard to this file, and check nothing")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: promcheck [-draw PICTURE.svg] FOLDER SCRAPES")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	do := check
	if *picture != "" {
		do = func(folder, scrapes string) error { return drawDashboard(folder, scrapes, *picture) }
	}
	if err := do(flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
