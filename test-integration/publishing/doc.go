// Package publishing checks which objects a real external-provisioner can publish beside a real API
// server, which refuses what a fake client accepts. There are no nodes and no scheduler.
//
// Environment: CSI_PROVISIONER is external-provisioner with the series.
package publishing
