package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capacityv2.internal/scripts/run"
)

// The output of govulncheck v1.9.0 for kube-scheduler, cut.
const findings = `{"config": {"protocol_version": "v1.0.0", "scanner_name": "govulncheck", "scanner_version": "v1.9.0", "scan_level": "symbol", "scan_mode": "binary"}}
{"progress": {"message": "Checking the binary against the vulnerabilities..."}}
{"osv": {"schema_version": "1.3.1", "id": "GO-2026-6094", "summary": "JSON private fields exposed"}}
{"finding": {"osv": "GO-2026-6094", "fixed_version": "v0.30.0", "trace": [{"module": "github.com/google/cel-go", "version": "v0.29.2"}]}}
{"finding": {"osv": "GO-2026-6094", "fixed_version": "v0.30.0", "trace": [{"module": "github.com/google/cel-go", "version": "v0.29.2", "package": "github.com/google/cel-go/ext", "function": "NativeTypes"}]}}
`

func TestCheckVulnerabilities(t *testing.T) {
	const cel = "- {id: GO-2026-6094, reason: not called, expires: 2026-12-01}\n"
	for name, c := range map[string]struct{ prints, list, want string }{
		"reviewed":              {findings, cel, ""},
		"not reviewed":          {findings, "[]", "GO-2026-6094: github.com/google/cel-go v0.29.2 in kubelet, fixed in v0.30.0"},
		"reviewed too long ago": {findings, strings.Replace(cel, "12-01", "11-24", 1), "was reviewed until 2026-11-24"},
		"no reason":             {findings, strings.Replace(cel, "not called", `""`, 1), "without a reason"},
		"no day":                {findings, strings.Replace(cel, "2026-12-01", "soon", 1), "without a reason or a day"},
		"twice":                 {findings, cel + cel, "listed twice"},
		"not in a program":      {findings, cel + strings.Replace(cel, "6094", "6107", 1), "GO-2026-6107 is listed, and no program has it"},
		"another field":         {findings, "- {id: GO-2026-6094, until: x}\n", "unknown field"},
		"no database":           {"", cel, "vulnerabilities of kubelet were not looked for"},
		"half of the output":    {findings[:len(findings)-20], cel, "findings of govulncheck in kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			list, out, program := filepath.Join(dir, "list.yaml"), filepath.Join(dir, "out"), filepath.Join(dir, "govulncheck")
			write(t, list, c.list)
			if c.prints != "" {
				write(t, out, c.prints)
			}
			write(t, program, "#!/bin/sh\n[ \"$*\" = '-mode binary -format json -db https://vuln.go.dev "+filepath.Join(dir, "kubelet")+"' ] && cat "+out+"\n")
			if err := os.Chmod(program, 0o755); err != nil {
				t.Fatal(err)
			}
			today := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
			err := CheckVulnerabilities(t.Context(), program, "", dir, []string{"kubelet"}, list, today, nil)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if name == "no database" && !run.IsRefusal(err) {
				t.Errorf("%v is no refusal", err)
			}
		})
	}
}
