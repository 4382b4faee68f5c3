// SPDX-License-Identifier: Apache-2.0

// Package driverguide runs what docs/tutorials/first-driver.md tells authors of CSI drivers to
// write, beside the real external-provisioner, on a control plane without kubelets. It also
// asks the metrics of both what docs/monitoring asks, and tries what docs/how-to/install.md and
// docs/how-to/drain.md say.
//
// Environment, which make test sets:
//
//   - DRIVER_GUIDE: the folder in which the guide was followed. The driver was built with
//     the race detector.
//   - COMPONENTS: the folder with kubectl and external-provisioner, with the series
package driverguide
