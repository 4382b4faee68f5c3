// SPDX-License-Identifier: Apache-2.0

// Package drivershapes plays drivers as they are: each shape that was found in code, charts and reports of
// drivers is a row of shapes_test.go, a few lines of configuration of the model driver. Two control
// planes run beside each other, the stock one and that of the series with the gate on, and each row
// is played on both at the same time, with the same loads. No driver may be worse off with the gate:
//
//   - pods that run with the stock programs run with the gate, too;
//   - no more volumes are refused by the driver;
//   - the last of these pods has its node at most five seconds later.
//
// Or the row names the section of the guide that says why not, and what happens instead.
//
// Programs are processes: kube-apiserver, kube-scheduler, and external-provisioner beside the driver, stock ones
// and those of the series, and two controller-managers of the series, because the stock one does the
// same (package skew). The driver's author has changed nothing, so nobody reports pools or confirms numbers.
//
// go test runs short loads. make test LONG=1, which alone runs this package, runs long ones, and writes the table of
// docs/reference/driver-shapes-results.md. Environment:
//
//   - COMPONENTS, STOCK_COMPONENTS: folders of the programs with and without the series
package drivershapes
