// SPDX-License-Identifier: Apache-2.0

// Package gitrepo runs git on a repository of ours so that the result depends
// on nothing but the arguments: no user or system configuration, fixed names.
package gitrepo

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

// Fixed identity of what the tooling commits.
const (
	Name  = "KEP-5925 Series"
	Email = "series@capacityv2.internal"
)

// Repo is a git repository with a work tree.
type Repo struct {
	Dir string
	// Log takes what git prints. It may be nil.
	Log io.Writer
}

// Open returns the repository in dir.
func Open(dir string, log io.Writer) Repo { return Repo{Dir: dir, Log: log} }

// env isolates git from the machine: a user's diff.algorithm, core.abbrev or
// commit.gpgSign would change the bytes of an export or a commit.
func env(date string) []string {
	e := []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "LC_ALL=C", "TZ=UTC",
		"GIT_AUTHOR_NAME=" + Name, "GIT_AUTHOR_EMAIL=" + Email,
		"GIT_COMMITTER_NAME=" + Name, "GIT_COMMITTER_EMAIL=" + Email,
	}
	if date != "" {
		e = append(e, "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	}
	return e
}

// transport are the variables that say how to reach a server, and where git's programs are.
var transport = regexp.MustCompile(`^GIT_(SSL_|PROXY|SSH|ASKPASS=|EXEC_PATH=)`)

// foreign tells the variables that would have git work in another way, or on another repository: its hooks
// have GIT_DIR and GIT_INDEX_FILE.
func foreign(variable string) bool {
	return strings.HasPrefix(variable, "GIT_") && !transport.MatchString(variable)
}

// LeaveRepository removes from our environment in which repository a hook, an alias or `rebase --exec` has started
// us, for upstream's scripts. The user's name and configuration stay.
func LeaveRepository() (err error) {
	for _, name := range []string{"DIR", "WORK_TREE", "INDEX_FILE", "PREFIX", "COMMON_DIR", "NAMESPACE", "OBJECT_DIRECTORY",
		"ALTERNATE_OBJECT_DIRECTORIES", "QUARANTINE_PATH", "CONFIG_PARAMETERS"} {
		err = errors.Join(err, os.Unsetenv("GIT_"+name))
	}
	return err
}

// settings hold for every call.
var settings = []string{
	"-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "core.quotePath=true",
	"-c", "gc.auto=0", "-c", "core.hooksPath=" + os.DevNull, "-c", "advice.detachedHead=false",
	"-c", "commit.gpgSign=false", "-c", "core.safecrlf=false",
}

func (r Repo) cmd(date string, args []string) run.Cmd {
	return run.Cmd{Dir: r.Dir, Env: env(date), Drop: foreign, Log: r.Log, Name: "git", Args: slices.Concat(settings, args)}
}

// OutputOf is [Repo.Output] with a text as standard input.
func (r Repo) OutputOf(ctx context.Context, text string, args ...string) (string, error) {
	c := r.cmd("", args)
	c.Stdin = strings.NewReader(text)
	out, err := c.Output(ctx)
	return strings.TrimRight(string(out), "\n"), err
}

// Filter runs git on a text, outside of any repository, and returns what it printed.
func Filter(ctx context.Context, text string, args ...string) (string, error) {
	c := Repo{}.cmd("", args)
	c.Env, c.Stdin = append(c.Env, "GIT_DIR="+os.DevNull), strings.NewReader(text)
	out, err := c.Output(ctx)
	return string(out), err
}

// Git runs git and drops its output (to the log).
func (r Repo) Git(ctx context.Context, args ...string) error { return r.cmd("", args).Run(ctx) }

// GitAll runs git for each list of arguments, until one fails.
func (r Repo) GitAll(ctx context.Context, calls ...[]string) error {
	for _, args := range calls {
		if err := r.Git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// GitAt is [Repo.Git] with a fixed author and committer date.
func (r Repo) GitAt(ctx context.Context, date string, args ...string) error {
	return r.cmd(date, args).Run(ctx)
}

// Output runs git and returns what it printed, without the last newline.
func (r Repo) Output(ctx context.Context, args ...string) (string, error) {
	out, err := r.cmd("", args).Output(ctx)
	return strings.TrimRight(string(out), "\n"), err
}

// Lines is [Repo.Output] split into lines; nil for no output.
func (r Repo) Lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := r.Output(ctx, args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\n"), nil
}

// Rev returns the full hash of rev.
func (r Repo) Rev(ctx context.Context, rev string) (string, error) {
	return r.Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev)
}

// Tree returns the hash of rev's tree.
func (r Repo) Tree(ctx context.Context, rev string) (string, error) {
	return r.Rev(ctx, rev+"^{tree}")
}

// Dirty returns the paths of changed and untracked files, sorted.
func (r Repo) Dirty(ctx context.Context) ([]string, error) {
	out, err := r.Output(ctx, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
	var paths []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) > 3 { // two letters and a space
			paths = append(paths, entry[3:])
		}
	}
	slices.Sort(paths)
	return paths, err
}

// Applying reports whether a `git am` or rebase is under way.
func (r Repo) Applying() bool {
	dir := filepath.Join(r.Dir, ".git")
	if b, err := os.ReadFile(dir); err == nil { // in a further work tree, it names the folder
		dir = strings.TrimSpace(strings.TrimPrefix(string(b), "gitdir: "))
	}
	for _, d := range []string{"rebase-apply", "rebase-merge", "CHERRY_PICK_HEAD"} {
		if _, err := os.Stat(filepath.Join(dir, d)); err == nil {
			return true
		}
	}
	return false
}

// Exists reports whether dir is the top of a git repository.
func (r Repo) Exists() bool {
	_, err := os.Stat(filepath.Join(r.Dir, ".git"))
	return err == nil
}
