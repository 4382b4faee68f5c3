// Package central measures one external-provisioner that publishes the capacity of many
// nodes, as drivers with a central controller have it. The API server, the scheduler and the
// provisioner are real; the driver answers for all nodes, and there are no kubelets.
//
// The tests have a driver that fails, and hold the provisioner up at certain points: when a volume was
// created and not confirmed, and when the capacity is known and not written.
//
// Other tests and benchmarks are about numbers: of nodes, of what watchers get, and of schedulers,
// each with pods of its own.
//
// make bench SUITE=chain runs BenchmarkCentral, and adds its table to the report. make bench
// SUITE=provisioner runs the other benchmarks. Environment:
//
//   - CSI_PROVISIONER, STOCK_CSI_PROVISIONER: external-provisioner with and without the series
//   - COMPONENTS: the folder with kube-scheduler
//   - CENTRAL_REPORT: the file for the table
//   - PROVISIONER_REPORT: the folder for the parts of docs/benchmarks/provisioner.md
package central
