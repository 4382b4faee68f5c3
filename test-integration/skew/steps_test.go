// SPDX-License-Identifier: Apache-2.0

package skew

import "fmt"

// step is one set of programs in a row of them, and what is stored then.
type step struct {
	// kind is that of all programs.
	kind kind
	// quiet and written are the objects that are no program's.
	quiet, written fields
	// published and confirmation are as in outcome, for a class that stays.
	published, confirmation string
}

// fields is what a CSIStorageCapacity and a CSIDriver show, as text.
type fields struct{ list, rebuilding string }

var (
	notThere = fields{"–", "–"}
	kept     = fields{"7Gi, 5Gi", "true"}
	// unseen is what the stock API server shows, dropped what is left when it has written.
	unseen  = fields{"none", "unset"}
	dropped = fields{"none", "false"}
)

// expectSteps says what has to come out of sets of programs that follow each other.
func expectSteps(kinds []kind) []step {
	// there tells that the objects that are no program's are there, whole that the written ones have the fields,
	// listed that the provisioner's objects have lists, left that the last one has confirmed volumes.
	var there, whole, listed, left bool
	var all []step
	for _, k := range kinds {
		o := expect(set{writer: k, reader: k, scheduler: k, manager: k, provisioner: k})
		s := step{kind: k, quiet: notThere, written: notThere, published: o.published, confirmation: none}
		if there {
			s.quiet, s.written = kept, kept
			switch {
			case k == stock:
				s.quiet, s.written = unseen, unseen
			case !whole && k == on:
				s.written = dropped
			case !whole:
				s.written = unseen
			}
		}
		if k == off && listed {
			s.published = pools // The API server keeps lists that are stored.
		}
		switch {
		case k == on:
			s.confirmation = valid
		case k == stock && left:
			s.confirmation = ignored // Nobody removes it.
		}
		listed, left = s.published == pools, s.confirmation != none
		there = there || k == on
		whole = k == on || whole && k == off
		all = append(all, s)
	}
	return all
}

// row is that of the table of steps.
func (s step) row(number int) string {
	return fmt.Sprintf("| %d | %s | %s | %s | %s | %s | %s | %s |\n",
		number, s.kind, s.quiet.list, s.written.list, s.quiet.rebuilding, s.written.rebuilding, s.published, s.confirmation)
}
