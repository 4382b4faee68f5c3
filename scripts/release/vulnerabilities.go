package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/run"
)

// vulnerabilityDatabase is the one that govulncheck reads unless told otherwise.
const vulnerabilityDatabase = "https://vuln.go.dev"

// reviewed is a vulnerability that a person has looked at.
type reviewed struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	// Expires is the day, in the form 2006-01-02, on which somebody has to look again.
	Expires string `json:"expires"`
}

// CheckVulnerabilities looks for known vulnerabilities of the programs in dir, and refuses those that are
// not in the list of reviewed ones at path. database is a folder or a URL; empty is Go's own.
func CheckVulnerabilities(ctx context.Context, govulncheck, database, dir string, programs []string, path string, today time.Time, log io.Writer) error {
	found := map[string]string{}
	for _, name := range programs {
		out, err := run.Cmd{Log: log, Name: govulncheck, Args: []string{
			"-mode", "binary", "-format", "json", "-db", cmp.Or(database, vulnerabilityDatabase), filepath.Join(dir, name),
		}}.Output(ctx)
		if err != nil {
			return run.Refuse("vulnerabilities of "+name+" were not looked for: "+err.Error(),
				"the database at "+cmp.Or(database, vulnerabilityDatabase), "make nightly ONLY=govulncheck VULN_DB=file:///FOLDER, with a copy of it")
		}
		if err := addFindings(found, name, out); err != nil {
			return fmt.Errorf("findings of govulncheck in %s: %w", name, err)
		}
	}
	return checkReviewed(found, path, today)
}

// addFindings adds what govulncheck printed of a program to found, which maps IDs to descriptions. The
// programs have no symbol table, so it finds what their packages have, also what the linker left out.
func addFindings(found map[string]string, program string, out []byte) error {
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var m struct {
			Finding *struct {
				OSV          string `json:"osv"`
				FixedVersion string `json:"fixed_version"`
				Trace        []struct{ Module, Version string }
			} `json:"finding"`
		}
		if err := dec.Decode(&m); err != nil {
			return err
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 && found[f.OSV] == "" {
			found[f.OSV] = fmt.Sprintf("%s %s in %s, fixed in %s", f.Trace[0].Module, f.Trace[0].Version, program, cmp.Or(f.FixedVersion, "no version"))
		}
	}
	return nil
}

// checkReviewed compares what was found with the reviewed list at path.
func checkReviewed(found map[string]string, path string, today time.Time) error {
	var list []reviewed
	if err := files.ReadYAML(path, &list); err != nil {
		return err
	}
	var bad []string
	known := map[string]bool{}
	for _, r := range list {
		expires, err := time.Parse(time.DateOnly, r.Expires)
		switch {
		case err != nil || r.Reason == "" || known[r.ID]:
			bad = append(bad, r.ID+" is listed twice, or without a reason or a day")
		case !today.Before(expires):
			bad = append(bad, r.ID+" was reviewed until "+r.Expires+": "+r.Reason)
		case found[r.ID] == "":
			bad = append(bad, r.ID+" is listed, and no program has it")
		}
		known[r.ID] = true
	}
	for _, id := range sortedKeys(found) {
		if !known[id] {
			bad = append(bad, id+": "+found[id]+", https://pkg.go.dev/vuln/"+id)
		}
	}
	if len(bad) > 0 {
		return run.Refuse("vulnerabilities of the built programs:\n    "+strings.Join(bad, "\n    "), "those of "+path, "edit the list, when you know what they mean here")
	}
	return nil
}
