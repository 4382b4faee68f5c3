// SPDX-License-Identifier: Apache-2.0

package node

import (
	"embed"
	"os"
	"text/template"

	"capacityv2.internal/scripts/ground/files"
)

//go:embed containerd.toml pods.conflist
var templates embed.FS

// Configuration stands for what every node is configured with.
func Configuration() (string, error) {
	return files.Hash(templates, "containerd.toml", "pods.conflist")
}

// config is what the templates are filled in with.
type config struct {
	*Spec
	Socket, CNI, Snapshotter string
}

// writeConfig fills in a template for the node, and writes it to a file of the node.
func (s *Spec) writeConfig(name, snapshotter, file string) error {
	t, err := template.ParseFS(templates, name)
	if err != nil {
		return err
	}
	out, err := os.Create(s.Node.Path(file))
	if err != nil {
		return err
	}
	defer out.Close()
	return t.Execute(out, config{s, ContainerdSocket, CNIBin, snapshotter})
}
