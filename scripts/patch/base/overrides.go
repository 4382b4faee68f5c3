// SPDX-License-Identifier: Apache-2.0

package base

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/ground/workspace"
)

// WriteOverrides writes the lines with which the go.mod of another module builds against the trees: all their modules
// that others import. What embeds the scheduler's plugin, as an autoscaler does, needs k8s.io/kubernetes, too.
func WriteOverrides(path string, projects []workspace.Project) error {
	var b strings.Builder
	b.WriteString("replace (\n")
	for _, p := range projects {
		if p.Library || p.Staging {
			fmt.Fprintf(&b, "\t%s => %s\n", p.Module, p.Tree())
		}
		if !p.Staging {
			continue
		}
		names, err := stagingModules(p.Tree())
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintf(&b, "\t%s => %s\n", name, filepath.Join(p.Tree(), stagingPrefix, name))
		}
	}
	b.WriteString(")\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
