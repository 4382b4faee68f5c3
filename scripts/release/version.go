// Package release stamps, builds and packs the patched Kubernetes: the same
// inputs give the same bytes, in every folder and at every time.
package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/workspace"
)

// seriesName is the patch series in the build metadata of a version.
const seriesName = "capacityv2"

// Version is the version of a custom release. The series is build metadata:
// semver gives that no precedence, so the release sorts equal to its base and
// passes version checks that a pre-release ("-suffix") fails.
type Version struct {
	// Base is upstream's version, such as v1.37.1.
	Base string
	// Revision counts the releases on that base, from 1. 0 is the base itself.
	Revision int
}

var baseVersion = regexp.MustCompile(`^v([0-9]+)\.([0-9]+)\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)

// ReadVersion returns the version that ws builds: the base that
// scripts/pins/kubernetes requires, and the number in patches/kubernetes/REVISION.
func ReadVersion(ws workspace.Workspace) (Version, error) {
	pinned, err := base.PinnedVersion(ws.Pin("kubernetes"), "k8s.io/kubernetes")
	if err != nil {
		return Version{}, fmt.Errorf("base version: %w", err)
	}
	if !baseVersion.MatchString(pinned) {
		return Version{}, fmt.Errorf("base version: %s requires k8s.io/kubernetes %s, which is no release", ws.Pin("kubernetes"), pinned)
	}
	file := revisionFile(ws)
	b, err := os.ReadFile(file)
	if err != nil {
		return Version{}, progress.Refuse("no revision: "+err.Error(), "a file with one whole number from 1", "echo 1 > "+file)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1 {
		return Version{}, progress.Refuse(fmt.Sprintf("%s holds %q", file, strings.TrimSpace(string(b))), "one whole number from 1", "echo 1 > "+file)
	}
	return Version{Base: pinned, Revision: n}, nil
}

func revisionFile(ws workspace.Workspace) string { return filepath.Join(ws.Series(), "REVISION") }

// String is the gitVersion: v1.37.1+capacityv2.1.
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

// Stamp is what a build writes into the programs.
type Stamp struct {
	Version Version
	// Commit is the tree's HEAD.
	Commit string
	// Dirty means that files of the tree differ from Commit.
	Dirty bool
	// Date is the build date, in whole seconds.
	Date time.Time
}

// ReadStamp returns the stamp for the tree of ws: its HEAD, and the date of
// that commit, which is the same everywhere because the series is applied with
// the patches' own dates. SOURCE_DATE_EPOCH (seconds) replaces the date.
func ReadStamp(ctx context.Context, ws workspace.Workspace) (Stamp, error) {
	v, err := ReadVersion(ws)
	if err != nil {
		return Stamp{}, err
	}
	return TreeStamp(ctx, ws.Tree(), v)
}

// TreeStamp is [ReadStamp] for any tree and version, such as the base without
// the series.
func TreeStamp(ctx context.Context, tree string, v Version) (Stamp, error) {
	repo := gitrepo.Open(tree, nil)
	head, err := repo.Output(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return Stamp{}, fmt.Errorf("commit of %s: %w", tree, err)
	}
	commit, seconds, _ := strings.Cut(head, " ")
	if e := os.Getenv("SOURCE_DATE_EPOCH"); e != "" {
		seconds = e
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 {
		return Stamp{}, progress.Refuse(fmt.Sprintf("SOURCE_DATE_EPOCH is %q", seconds), "seconds since 1970", "unset SOURCE_DATE_EPOCH")
	}
	dirty, err := repo.Dirty(ctx)
	if err != nil {
		return Stamp{}, fmt.Errorf("status of %s: %w", tree, err)
	}
	return Stamp{Version: v, Commit: commit, Dirty: len(dirty) > 0, Date: time.Unix(n, 0).UTC()}, nil
}

// GitVersion is the version, marked as upstream does when the tree has changes
// that are in no commit. The mark is build metadata too.
func (s Stamp) GitVersion() string {
	v := s.Version.String()
	switch {
	case !s.Dirty:
		return v
	case s.Version.Revision == 0:
		return v + "+dirty"
	default:
		return v + "-dirty"
	}
}

// stamped are the packages whose variables upstream's hack/lib/version.sh sets.
var stamped = []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"}

// Ldflags are upstream's linker flags for s (hack/lib/version.sh, golang.sh).
func (s Stamp) Ldflags() string {
	state := "clean"
	if s.Dirty {
		state = "dirty"
	}
	major, minor := s.Version.majorMinor()
	flags := []string{"-s", "-w"}
	for _, kv := range [][2]string{
		{"buildDate", s.Date.Format("2006-01-02T15:04:05Z")},
		{"gitCommit", s.Commit},
		{"gitTreeState", state},
		{"gitVersion", s.GitVersion()},
		{"gitMajor", major},
		{"gitMinor", minor},
	} {
		for _, p := range stamped {
			flags = append(flags, "-X", p+"."+kv[0]+"="+kv[1])
		}
	}
	return strings.Join(flags, " ")
}
