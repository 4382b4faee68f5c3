// Package central tests one external-provisioner that publishes the capacity of many
// nodes, as drivers with a central controller have it. The API server, the scheduler and the
// provisioner are real; the driver answers for all nodes, and there are no kubelets.
//
// The tests have a driver that fails, and hold the provisioner up at certain points: when a volume was
// created and not confirmed, and when the capacity is known and not written.
//
// Other tests are about numbers: of nodes, of what watchers get, and of schedulers, each with pods of its own.
//
// Environment:
//
//   - CSI_PROVISIONER: external-provisioner with the series
//   - COMPONENTS: the folder with kube-scheduler
package central
