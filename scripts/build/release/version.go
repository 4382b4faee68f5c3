// SPDX-License-Identifier: Apache-2.0

// Package release stamps, builds and packs the patched projects: the same
// inputs give the same bytes, in every folder and at every time.
package release

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
)

// seriesName is the patch series in the build metadata of a version.
const seriesName = "capacityv2"

// Version is the version of a custom release. The series is build metadata:
// semver gives that no precedence, so the release sorts equal to its base and
// passes version checks that a pre-release ("-suffix") fails.
type Version struct {
	// Base is upstream's version, such as v1.37.2.
	Base string
	// Revision counts the releases on that base, from 1. 0 is the base itself.
	Revision int
}

var baseVersion = regexp.MustCompile(`^v([0-9]+)\.([0-9]+)\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)

// ReadVersion returns the version that ws builds: that of Kubernetes.
func ReadVersion(ws workspace.Workspace) (Version, error) {
	p, err := ws.Project(workspace.Kubernetes)
	if err != nil {
		return Version{}, err
	}
	return projectVersion(ws, p)
}

// projectVersion returns the version of one of the projects: the base that its pin
// requires, and the number in patches/REVISION.
func projectVersion(ws workspace.Workspace, p workspace.Project) (Version, error) {
	pinned, err := base.PinnedVersion(p.Pin(), p.Module)
	if err != nil {
		return Version{}, fmt.Errorf("base version: %w", err)
	}
	if !baseVersion.MatchString(pinned) {
		return Version{}, fmt.Errorf("base version: %s requires %s %s, which is no release", p.Pin(), p.Module, pinned)
	}
	file := ws.Revision()
	b, err := os.ReadFile(file)
	if err != nil {
		return Version{}, run.Refuse("no revision: "+err.Error(), "a file with one whole number from 1", "echo 1 > "+file)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1 {
		return Version{}, run.Refuse(fmt.Sprintf("%s holds %q", file, strings.TrimSpace(string(b))), "one whole number from 1", "echo 1 > "+file)
	}
	return Version{Base: pinned, Revision: n}, nil
}

// String is the gitVersion: v1.37.2+capacityv2.1.
func (v Version) String() string {
	if v.Revision == 0 {
		return v.Base
	}
	return fmt.Sprintf("%s+%s.%d", v.Base, seriesName, v.Revision)
}

// ImageTag is the version with `_` for `+`, which a tag cannot hold.
func (v Version) ImageTag() string { return imageTag(v.String()) }

func imageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// majorMinor returns the two numbers without upstream's `+`: 1 and 37.
func (v Version) majorMinor() (major, minor string) {
	m := baseVersion.FindStringSubmatch(v.Base)
	if m == nil {
		return "", ""
	}
	return m[1], m[2]
}
