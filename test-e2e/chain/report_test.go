package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"capacityv2.internal/test-e2e/measure"
)

// report is the table, which grows with each scenario.
type report struct {
	// file is the page, "" for none; beside it is a file with the results, so that a run
	// of some scenarios keeps those of the others.
	file    string
	Results map[string]measure.Result
}

func readReport(t *testing.T) *report {
	t.Helper()
	r := &report{file: os.Getenv("CHAIN_REPORT"), Results: map[string]measure.Result{}}
	if r.file == "" {
		return r
	}
	b, err := os.ReadFile(r.data())
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	if err == nil {
		err = json.Unmarshal(b, &r.Results)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *report) data() string { return strings.TrimSuffix(r.file, ".md") + ".json" }

func key(s setting, v variant) string {
	return s.Name + "/" + v.scheduler() + "/" + v.provisioner.String()
}

func (r *report) set(s setting, v variant, of measure.Result) { r.Results[key(s, v)] = of }

// write writes the page and the results.
func (r *report) write(t *testing.T) {
	t.Helper()
	if r.file == "" {
		return
	}
	b, err := json.MarshalIndent(r.Results, "", "  ")
	if err == nil {
		err = os.WriteFile(r.data(), append(b, '\n'), 0o644)
	}
	if err == nil {
		err = os.WriteFile(r.file, r.page(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const head = `# The whole chain: driver, provisioner, scheduler, kubelet

Written by ` + "`make chain`" + `, on three nodes of one machine with two cores. The reference
driver and external-provisioner run on each node. Each pod has one volume of 10 GiB.

- *provisioner*: ` + "`stock`" + ` is external-provisioner as released, ` + "`patched`" + ` publishes pools and
  confirms its reports.
- *failed*: volumes that were asked for where there was no room.
- *decided*, *running*: seconds from the first pod until the last one had a node, and until
  it ran. Where pods come and go, they say nothing. In a drain, the first pod is the first
  that comes instead of one on the drained node.
- *wait*: the longest time in seconds that a pod had no node while a node had room for it.
- *left*: pods that never ran. With the gate off, nobody looks whether there is room for a
  volume that has to be rebuilt.
- *lost*: pods that did not find their data after they were moved.

`

// page is the table of all settings that have results.
func (r *report) page() []byte {
	var b bytes.Buffer
	b.WriteString(head)
	b.WriteString("| scenario | scheduler | provisioner | failed | decided | running | wait | left | lost |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, s := range settings {
		for _, v := range s.variants() {
			of, ok := r.Results[key(s, v)]
			if !ok {
				fmt.Fprintf(&b, "| %s | %s | %s | not run | | | | | |\n", s.Name, v.scheduler(), v.provisioner)
				continue
			}
			decided, running := fmt.Sprintf("%.1f", of.Decided), fmt.Sprintf("%.1f", of.Running)
			if s.Churn > 0 {
				decided, running = "", ""
			}
			lost := ""
			if s.Drain {
				lost = strconv.Itoa(of.Lost)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s | %.1f | %d | %s |\n", s.Name, v.scheduler(), v.provisioner, of.Failed, decided, running, of.Wait, of.Left, lost)
		}
	}
	return b.Bytes()
}
