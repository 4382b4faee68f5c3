package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// Pool is a folder with a size of its own. No volume spans two pools.
type Pool struct {
	// Name is what parameters of storage classes and metrics call the pool.
	Name string `json:"name"`
	// Path is the folder, which is made if it does not exist. One that is relative is
	// below ROOT/NODE/pools, so that all nodes can have the same configuration.
	Path string `json:"path"`
	// Size is how many bytes the volumes of the pool may have together. Volumes that
	// exist stay when it gets smaller.
	Size resource.Quantity `json:"size"`
}

// Parse reads a pool from NAME=PATH:SIZE.
func Parse(s string) (Pool, error) {
	name, rest, ok := strings.Cut(s, "=")
	colon := strings.LastIndex(rest, ":")
	if !ok || colon < 0 {
		return Pool{}, fmt.Errorf("pool %q: expected NAME=PATH:SIZE, such as fast=/disks/fast:100Gi", s)
	}
	size, err := resource.ParseQuantity(rest[colon+1:])
	if err != nil {
		return Pool{}, fmt.Errorf("pool %q: size: %w", s, err)
	}
	return Pool{Name: name, Path: rest[:colon], Size: size}, nil
}

// Load reads the pools of a node from a YAML file. The key pools has a list of them, and
// the key nodes, by names, other lists for nodes that differ.
func Load(file, node string) ([]Pool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config struct {
		Pools []Pool            `json:"pools"`
		Nodes map[string][]Pool `json:"nodes"`
	}
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if pools, ok := config.Nodes[node]; ok {
		return pools, nil
	}
	return config.Pools, nil
}

// resolve returns pools with absolute paths, where relative ones are below a folder.
func resolve(pools []Pool, folder string) ([]Pool, error) {
	if len(pools) == 0 {
		return nil, fmt.Errorf("no pools; expected at least one")
	}
	names, paths := sets.New[string](), sets.New[string]()
	var resolved []Pool
	for _, p := range pools {
		path := filepath.Clean(p.Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		switch {
		case p.Name == "" || strings.ContainsAny(p.Name, ", /"):
			return nil, fmt.Errorf("pool %q: expected a name without commas, blanks and slashes", p.Name)
		case p.Path == "" || !filepath.IsAbs(p.Path) && !filepath.IsLocal(p.Path):
			return nil, fmt.Errorf("pool %s: path %q; expected one that is absolute, or below the folder of the node", p.Name, p.Path)
		case p.Size.Sign() <= 0:
			return nil, fmt.Errorf("pool %s: size %s is not positive", p.Name, p.Size.String())
		case names.Has(p.Name) || paths.Has(path):
			return nil, fmt.Errorf("pool %s: another pool has its name or its folder", p.Name)
		}
		names.Insert(p.Name)
		paths.Insert(path)
		p.Path = path
		resolved = append(resolved, p)
	}
	return resolved, nil
}
