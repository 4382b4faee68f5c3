// SPDX-License-Identifier: Apache-2.0

package base

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// EnsureServed refuses a version of a project that the Go module proxy does not have, or none. It lists those after the
// present one, which the options have; command moves to one.
func EnsureServed(ctx context.Context, o Options, version string, command func(version string) string) error {
	if version != "" && o.Staging {
		if _, err := StagingVersion(version); err != nil {
			return err
		}
	}
	found := "no BASE to move " + o.Title + " to"
	if version != "" {
		_, err := goList(ctx, o.Module+"@"+version)
		if err == nil || ctx.Err() != nil {
			return err
		}
		found = o.Title + " " + version + " does not exist, or the Go module proxy does not serve it"
	}
	later, err := servedAfter(ctx, o)
	if err != nil {
		return err
	}
	if len(later) == 0 {
		return run.Refuse(found, "a version of "+o.Module+" that is served; after "+o.Version+", none is", "go env GOPROXY")
	}
	return run.Refuse(found, "one that is served; after "+o.Version+", those are "+strings.Join(later, ", "), command(later[len(later)-1])+" FORECAST=1")
}

// servedAfter lists the versions after the present one.
func servedAfter(ctx context.Context, o Options) ([]string, error) {
	out, err := goList(ctx, "-versions", o.Module)
	versions := strings.Fields(out)
	if err != nil || len(versions) == 0 {
		return nil, err
	}
	return slices.DeleteFunc(versions[1:], func(v string) bool { return semver.Compare(v, o.Version) <= 0 }), nil // after the path
}

// goList runs outside of any module, whose requirements would have to be complete.
func goList(ctx context.Context, args ...string) (string, error) {
	out, err := run.Cmd{Dir: "/", Env: append(toolchain.Env(), "GOWORK=off"), Name: "go", Args: append([]string{"list", "-m"}, args...)}.Output(ctx)
	return string(out), err
}
