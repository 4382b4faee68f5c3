package suites

import "regexp"

// Suite is a package of upstream's integration tests.
type Suite struct {
	// Folder is that of the package, below test/integration.
	Folder string
	// Args are further arguments of go test.
	Args []string
	// Alone is set if its tests take names of which a machine has only one, such as
	// abstract Unix sockets: it runs with the gate off first, and then with the gate on.
	Alone bool
}

func (s Suite) pkg() string { return "./test/integration/" + s.Folder }

// perfShort selects the workloads that upstream's own checks run.
var perfShort = []string{"-args", "-test-scheduling-label-filter=integration-test,short,-performance"}

// All are the suites of the scheduler, of volumes, and those that go through all
// types of the API, or all of group storage.
var All = []Suite{
	{Folder: "apiserver"},
	{Folder: "apiserver/admissionwebhook"},
	{Folder: "apiserver/apidefinitions"},
	{Folder: "apiserver/apply"},
	{Folder: "apiserver/cel"},
	{Folder: "apiserver/discovery"},
	{Folder: "apiserver/openapi"},
	{Folder: "controlplane/transformation", Alone: true},
	{Folder: "dryrun"},
	{Folder: "etcd"},
	{Folder: "namespace"},
	{Folder: "scheduler"},
	{Folder: "scheduler/batch"},
	{Folder: "scheduler/bind"},
	{Folder: "scheduler/eventhandler"},
	{Folder: "scheduler/extender"},
	{Folder: "scheduler/filters"},
	{Folder: "scheduler/nominated_node_name"},
	{Folder: "scheduler/plugins"},
	{Folder: "scheduler/podgroup"},
	{Folder: "scheduler/podgroup/queueing"},
	{Folder: "scheduler/podgroup/topology_aware_scheduling"},
	{Folder: "scheduler/preemption"},
	{Folder: "scheduler/preemption/misc"},
	{Folder: "scheduler/preemption/nominatednodename"},
	{Folder: "scheduler/preemption/podgroup"},
	{Folder: "scheduler/prequeueinghint"},
	{Folder: "scheduler/queueing"},
	{Folder: "scheduler/scoring"},
	{Folder: "scheduler/serving"},
	{Folder: "scheduler/taint"},
	{Folder: "scheduler_perf/default_preemption", Args: perfShort},
	{Folder: "scheduler_perf/misc", Args: perfShort},
	{Folder: "scheduler_perf/volumes", Args: perfShort},
	{Folder: "volumescheduling"},
}

// Select returns the suites whose folder matches.
func Select(folder *regexp.Regexp) []Suite {
	var selected []Suite
	for _, s := range All {
		if folder.MatchString(s.Folder) {
			selected = append(selected, s)
		}
	}
	return selected
}
