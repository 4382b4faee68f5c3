package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestMakefile checks that the Makefile has a target for each verb, that what it
// passes on are flags of the verb, and that make help names each variable.
func TestMakefile(t *testing.T) {
	content, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	makefile := string(content)
	command := root()

	var calls []string
	help := makefile[strings.Index(makefile, "\nhelp:"):strings.Index(makefile, "\nup:")]
	definitions, recipes := makefile[:strings.Index(makefile, "\nhelp:")], makefile[strings.Index(makefile, "\nup:"):]
	for _, m := range regexp.MustCompile(`\$\(CAPACITYV2\) (\S+)(.*)`).FindAllStringSubmatch(recipes, -1) {
		calls = append(calls, m[1])
		verb, _, err := command.Find(m[1:2])
		if err != nil {
			t.Errorf("make calls the verb %s: %v", m[1], err)
			continue
		}
		args := m[2]
		if strings.Contains(args, "$(CLUSTER)") {
			args += definitions[strings.Index(definitions, "\nCLUSTER ="):]
		}
		for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(args, -1) {
			if verb.Flags().Lookup(flag[1]) == nil {
				t.Errorf("make %s passes --%s on, which the verb does not have", m[1], flag[1])
			}
		}
	}
	for _, verb := range command.Commands() {
		if !verb.Hidden && !slices.Contains(calls, verb.Name()) {
			t.Errorf("no target calls the verb %s", verb.Name())
		}
	}

	variables := map[string]bool{}
	for _, m := range regexp.MustCompile(`\$\(if \$\(([A-Z_]+)\),`).FindAllStringSubmatch(definitions+recipes, -1) {
		variables[m[1]] = true
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`\b([A-Z_]+)=`).FindAllStringSubmatch(help, -1) {
		named[m[1]] = true
	}
	for v := range variables {
		if !named[v] {
			t.Errorf("make help does not name %s", v)
		}
	}
	for v := range named {
		if !variables[v] {
			t.Errorf("make help names %s, which no target uses", v)
		}
	}
	eachFlag(command, func(verb, flag string) {
		if v := strings.ToUpper(strings.ReplaceAll(flag, "-", "_")); !variables[v] {
			t.Errorf("%s --%s has no variable %s in the Makefile", verb, flag, v)
		}
	})
}

// TestPatterns checks that make passes regular expressions on as they are: it would take
// the $ at the end of one for the beginning of a variable.
func TestPatterns(t *testing.T) {
	const pattern = "^(a|b)$|^c$"
	for target, variable := range map[string]string{
		"upstream-suites": "SUITE", "fails-without": "SUITE", "nightly": "ONLY", "chain": "ONLY", "bench": "ONLY", "prove": "PATCH", "e2e": "FOCUS",
	} {
		out, err := exec.Command("make", "-C", "..", "--dry-run", target, variable+"="+pattern).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "'"+pattern+"'") {
			t.Errorf("make %s: %v, runs %q without %s", target, err, out, pattern)
		}
	}
}

func TestMessage(t *testing.T) {
	left := errors.New("a mount is left")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"an error":                   {left, "error: a mount is left"},
		"an interrupt":               {context.Canceled, "interrupted: context canceled"},
		"what went wrong afterwards": {errors.Join(context.Canceled, left), "interrupted: context canceled\na mount is left"},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// eachFlag calls f for the flags of the verbs, but for help.
func eachFlag(command *cobra.Command, f func(verb, flag string)) {
	for _, verb := range command.Commands() {
		for _, flag := range regexp.MustCompile(`(?m)^\s+--([a-z-]+)`).FindAllStringSubmatch(verb.LocalFlags().FlagUsages(), -1) {
			f(verb.Name(), flag[1])
		}
	}
}
