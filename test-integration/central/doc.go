// Package central measures one external-provisioner that publishes the capacity of many
// nodes, as drivers with a central controller have it. The API server, the scheduler and the
// provisioner are real; the driver answers for all nodes, and there are no kubelets.
//
// The tests have a driver that fails, and hold the provisioner up at certain points: when a volume was
// created and not confirmed, and when the capacity is known and not written.
//
// make bench SUITE=chain runs the benchmark, and adds its table to the report. Environment:
//
//   - CSI_PROVISIONER, STOCK_CSI_PROVISIONER: external-provisioner with and without the series
//   - CENTRAL_REPORT: the file for the table
package central
