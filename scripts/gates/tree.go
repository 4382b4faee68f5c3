package gates

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"

	"capacityv2.internal/scripts/progress"
)

// featuresFile defines Kubernetes' own gates.
const featuresFile = "pkg/features/kube_features.go"

// spec is a gate's newest entry in the tree.
type spec struct {
	stage, since string
	enabled      bool
}

// CheckTree compares the list with the tree at dir, and the gates of ours with
// what the tree has beyond stock, the base without the series.
func (l List) CheckTree(dir, stock string) error {
	tree, err := readSpecs(filepath.Join(dir, featuresFile))
	if err != nil {
		return err
	}
	before, err := readSpecs(filepath.Join(stock, featuresFile))
	if err != nil {
		return err
	}
	added := map[string]bool{}
	for name := range tree {
		if _, ok := before[name]; !ok {
			added[name] = true
		}
	}
	errs := []error{l.checkOurs(added, "the tree's patches")}
	for _, g := range l.Gates {
		got, ok := tree[g.Name]
		want := spec{g.Stage, g.Since, g.Default}
		if !ok {
			errs = append(errs, progress.Refuse("the tree has no gate "+g.Name, "a gate of "+featuresFile, "edit feature-gates.yaml"))
		} else if got != want {
			errs = append(errs, progress.Refuse(fmt.Sprintf("feature-gates.yaml says of %s: %s", g.Name, want), fmt.Sprintf("%s (%s)", got, featuresFile), "edit feature-gates.yaml"))
		}
	}
	return errors.Join(errs...)
}

func (s spec) String() string {
	return fmt.Sprintf("%s since %s, default %t", s.stage, s.since, s.enabled)
}

// readSpecs reads the literal map from gate to versioned specs.
func readSpecs(path string) (map[string]spec, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	specs := map[string]spec{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || v.Names[0].Name != "defaultVersionedKubernetesFeatureGates" || len(v.Values) != 1 {
			return true
		}
		m, ok := v.Values[0].(*ast.CompositeLit)
		if !ok {
			return false
		}
		for _, e := range m.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			if s, ok := newest(kv.Value); ok {
				specs[lastName(kv.Key)] = s
			}
		}
		return false
	})
	if len(specs) == 0 {
		return nil, fmt.Errorf("%s: no defaultVersionedKubernetesFeatureGates map", path)
	}
	return specs, nil
}

// newest reads the last element of a featuregate.VersionedSpecs literal.
func newest(e ast.Expr) (spec, bool) {
	list, ok := e.(*ast.CompositeLit)
	if !ok || len(list.Elts) == 0 {
		return spec{}, false
	}
	last, ok := list.Elts[len(list.Elts)-1].(*ast.CompositeLit)
	if !ok {
		return spec{}, false
	}
	var s spec
	for _, e := range last.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch lastName(kv.Key) {
		case "Version":
			s.since = versionOf(kv.Value)
		case "Default":
			s.enabled = lastName(kv.Value) == "true"
		case "PreRelease":
			s.stage = lastName(kv.Value)
		}
	}
	return s, true
}

// versionOf reads version.MustParse("1.37").
func versionOf(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return ""
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// lastName returns the name of an identifier or of a selector's field.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
