// Package machine is what the tooling asks of this machine and changes on it: control
// groups, networks and processes. What is changed is told to a [Record] first.
package machine

// Record remembers what has to be undone, before it is done.
type Record interface {
	// Group is a control group, as a folder, that is about to be made.
	Group(dir string) error
	// Setting is what to write to a file at the end.
	Setting(file, content string) error
}
