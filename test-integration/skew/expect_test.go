// SPDX-License-Identifier: Apache-2.0

package skew

// outcome is what comes out of a set of programs. Each field has one of the texts below.
type outcome struct {
	// published is what the scheduler reads of the pools of a node, in CSIStorageCapacity.
	published string
	// confirmation is about the annotation that says which volumes the numbers include.
	confirmation string
	// together, apart, many and large are pods with new volumes, see cell.
	together, apart, many, large string
	// drained is a pod with a volume on a node that is cordoned.
	drained string
}

const (
	pools         = "pools"
	sumAndLargest = "sum, largest"
	sum           = "sum"

	none    = "none"
	valid   = "valid"
	ignored = "ignored"

	runs  = "runs"
	waits = "waits"
	fails = "fails"

	moves    = "moves"
	anywhere = "anywhere"
	stays    = "stays"
)

// expect says what has to come out.
func expect(s set) outcome {
	o := outcome{published: sum, confirmation: none, together: runs, apart: fails, many: fails, large: fails, drained: stays}

	// The provisioner of the series has the largest pool in maximumVolumeSize, for those who do not
	// know the list. Only an API server with the gate on stores the list, and the stock one does
	// not show it.
	isList := false
	if s.provisioner != stock {
		o.published, o.large = sumAndLargest, waits
		if isList = s.writer == on && s.reader != stock; isList {
			o.published = pools
		}
	}
	// The annotation needs no field. It repeats the sum, which all of them show.
	if s.provisioner == on {
		o.confirmation = valid
	}
	if s.scheduler == on {
		// Without a list, all volumes together are compared with the sum.
		o.many = waits
		if isList {
			o.apart = waits
		}
	}
	// MutablePVNodeAffinity, which comes with the gate, lets the driver release its volume. To
	// send it elsewhere, the scheduler has to see volumeRebuilding.
	switch {
	case s.writer != on:
	case s.scheduler != on:
		o.drained = anywhere
	case s.reader == stock:
		o.drained = waits
	default:
		o.drained = moves
	}
	return o
}
