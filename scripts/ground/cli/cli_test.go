// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/ground/workspace"
)

// command has a flag of each kind, and answers with the values that they got.
func command(got *string) *cobra.Command {
	var pattern *regexp.Regexp
	var key string
	var force bool
	root := Root("x", "x")
	verb := Verb("verb", "Do it", "", "", func(_ context.Context, ws workspace.Workspace) error {
		*got = strings.Join([]string{map[bool]string{true: "force"}[force], key, ws.Checkout}, "|")
		if pattern != nil {
			*got += "|" + pattern.String()
		}
		return nil
	})
	verb.Flags().BoolVar(&force, "force", false, "")
	PathFlag(verb, &key, "sign-key", "")
	PatternFlag(verb, &pattern, "only", "what matches")
	other := Verb("other", "Do something else", "", "", func(context.Context, workspace.Workspace) error { return nil })
	other.Flags().Int("nodes", 3, "")
	Add(root, "Use", verb, other, Verb("down", "End it", "", "", nil))
	root.SetArgs([]string{"verb"})
	return root
}

// TestFromMake starts make, which starts this test.
func TestFromMake(t *testing.T) {
	if result := os.Getenv("CLI_TEST_RESULT"); result != "" {
		var got string
		if err := command(&got).ExecuteContext(t.Context()); err != nil {
			got = err.Error()
		}
		if err := os.WriteFile(result, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	makefile := filepath.Join(dir, "Makefile")
	if err := os.WriteFile(makefile, []byte("verb:\n\t@'"+os.Args[0]+"' -test.run '^TestFromMake$$'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	above, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args, env []string
		want      string
	}{
		"nothing":               {nil, nil, "||"},
		"exported":              {nil, []string{"FORCE=1", "ONLY=x"}, "||"},
		"a switch":              {[]string{"FORCE=1"}, nil, "force||"},
		"an empty one":          {[]string{"FORCE="}, nil, "||"},
		"a pattern":             {[]string{"ONLY=^(a|b)$|^c d$"}, nil, "|||^(a|b)$|^c d$"},
		"a bad pattern":         {[]string{"ONLY=("}, nil, "ONLY=(: invalid argument \"(\" for \"--only\" flag: error parsing regexp: missing closing ): `(`"},
		"quotes, backslashes":   {[]string{`ONLY='"x"\.`}, nil, `|||'"x"\.`},
		"a path from here":      {[]string{"SIGN_KEY=my dir/k"}, nil, "|" + above + "/my dir/k|"},
		"a whole path":          {[]string{"SIGN_KEY=/my dir/k", "KUBERNETES_SRC=/src"}, nil, "|/my dir/k|/src"},
		"one inside of another": {[]string{"ONLY=a FORCE=1"}, nil, "|||a FORCE=1"},
		"no such variable":      {[]string{"FROCE=1"}, nil, "make verb does not read FROCE\n  expected: FROCE: no verb reads it\n  run: make help"},
		"of another verb":       {[]string{"NODES=3"}, nil, "make verb does not read NODES\n  expected: NODES with make other\n  run: make help"},
		"an empty one of it":    {[]string{"NODES="}, nil, "make verb does not read NODES\n  expected: NODES with make other\n  run: make help"},
		"an old word":           {[]string{"ONLY=a", "PATCH=a"}, nil, "make verb does not read PATCH\n  expected: ONLY in place of PATCH\n  run: make help"},
		"two": {[]string{"FOCUS=a", "NODES=3"}, nil,
			"make verb does not read FOCUS, NODES\n  expected: ONLY in place of FOCUS; NODES with make other\n  run: make help"},
	} {
		t.Run(name, func(t *testing.T) {
			result := filepath.Join(t.TempDir(), "result")
			cmd := exec.Command("make", append([]string{"--file", makefile, "verb"}, c.args...)...)
			cmd.Env = append(append(os.Environ(), "CLI_TEST_RESULT="+result, "MAKEFLAGS="), c.env...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got, err := os.ReadFile(result); err != nil || string(got) != c.want {
				t.Errorf("got %q, error %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	var got string
	want := "Use:\n  make verb     Do it\n                FORCE=1 ONLY=REGEXP SIGN_KEY=FILE\n  make other    Do something else\n                NODES=int\n"
	if out := list(command(&got)); !strings.HasPrefix(out, want) {
		t.Errorf("got %s, want %s", out, want)
	}
}

// TestReads: where the base comes from matters to verbs that make one.
func TestReads(t *testing.T) {
	var got string
	for verb, want := range map[string]bool{"verb": true, "other": true, "down": false} {
		c, _, err := command(&got).Find([]string{verb})
		if err != nil || reads(c, "KUBERNETES_SRC") != want {
			t.Errorf("%s reads KUBERNETES_SRC: %t, error %v", verb, !want, err)
		}
	}
}
