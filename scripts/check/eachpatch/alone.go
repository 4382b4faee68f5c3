// SPDX-License-Identifier: Apache-2.0

package eachpatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

// doesNotApply is the verdict on a fix that needs another patch.
const doesNotApply verdict = "DOES NOT APPLY"

// standsAlone is whether a patch has to go upstream without the others.
func (c Case) standsAlone() bool { return c.Patch.Class() == "fix" && c.provable() }

// alone proves a fix on the base, without any other patch: it applies and builds, and its test fails without it. An error
// is what keeps the machine from finding out.
func (p *prover) alone(ctx context.Context, c Case, s *run.Step) (verdict, bool, error) {
	work := gitrepo.Open(p.dir, s.Log)
	if err := work.Git(ctx, "checkout", "--quiet", "--force", "--detach", base.Ref); err != nil {
		return "", false, err
	}
	mail, err := os.MkdirTemp("", "alone")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(mail)
	patch := p.prefixes[c.n]
	if err := work.Git(ctx, "format-patch", "-1", "--quiet", "--full-index", "--binary", "--output-directory", mail, patch.Commit); err != nil {
		return "", false, err
	}
	files, err := filepath.Glob(filepath.Join(mail, "*.patch"))
	if err != nil {
		return "", false, err
	}
	if err := work.Git(ctx, append([]string{"am", "--quiet", "--keep-cr", "--no-gpg-sign"}, files...)...); err != nil {
		if !work.Applying() {
			return "", false, err
		}
		return doesNotApply, false, work.Git(context.WithoutCancel(ctx), "am", "--abort")
	}
	commit, err := work.Rev(ctx, "HEAD")
	if err != nil {
		return "", false, err
	}
	tree, err := work.Tree(ctx, commit)
	if err != nil {
		return "", false, err
	}
	proof := []string{"alone", tree, c.Package, c.Test}
	if p.record.has(proof...) {
		return failsWithout, true, nil
	}
	if err := toolchain.BuildPackages(ctx, p.dir, s.Log, series.Packages(p.dir, patch.Paths)...); err != nil {
		return "", false, fmt.Errorf("alone on the base, it does not build: %w", err)
	}
	verdict, err := p.proveAt(ctx, c, series.Prefix{Commit: commit, Subject: patch.Subject, Paths: patch.Paths}, s)
	if err == nil && verdict.proven() {
		err = p.record.add(proof...)
	}
	return verdict, false, err
}

// proveAlone proves one fix on the base alone.
func (plan *Plan) proveAlone(ctx context.Context, pr *prover, c Case, project string, s *run.Step) error {
	verdict, known, err := pr.alone(ctx, c, s)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("alone on the base, %s:%s %s", c.Package, c.Test, verdict)
	if known {
		line += ", as was seen before"
	}
	if verdict == doesNotApply {
		line = "alone on the base, it " + string(verdict)
	}
	s.Sayf("%s", line)
	if !verdict.proven() {
		plan.bad = append(plan.bad, fmt.Sprintf("%s %s: %s (log: %s)", project, c.Patch.Name, line, s.LogPath))
	}
	return nil
}
