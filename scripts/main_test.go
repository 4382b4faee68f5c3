package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestMakefile checks that the Makefile has a target for each verb, that each passes on all
// flags of its verb and no others, and that make help names the verbs of each variable.
func TestMakefile(t *testing.T) {
	content, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	definitions, rest, _ := strings.Cut(strings.ReplaceAll(string(content), "\\\n", ""), "\nhelp:")
	help, recipes, _ := strings.Cut(rest, "\nup:")
	_, cluster, _ := strings.Cut(definitions, "\nCLUSTER =")

	recipe := map[string]string{}
	for _, m := range regexp.MustCompile(`\$\(CAPACITYV2\) (\S+)(.*)`).FindAllStringSubmatch(recipes, -1) {
		recipe[m[1]] = strings.ReplaceAll(m[2], "$(CLUSTER)", cluster)
	}
	used := map[string][]string{"KUBERNETES_SRC": {"all"}, "BASE": {"rebase"}} // a flag of all verbs, and an argument
	for _, verb := range root().Commands() {
		if verb.Hidden {
			continue
		}
		args, ok := recipe[verb.Name()]
		if !ok {
			t.Errorf("no target calls the verb %s", verb.Name())
		}
		delete(recipe, verb.Name())
		var want, got []string
		verb.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				want = append(want, f.Name)
			}
		})
		for _, m := range regexp.MustCompile(`\$\(if \$\(([A-Z_]+)\),--([a-z-]+)`).FindAllStringSubmatch(args, -1) {
			got = append(got, m[2])
			used[m[1]] = append(used[m[1]], verb.Name())
			if v := strings.ToUpper(strings.ReplaceAll(m[2], "-", "_")); v != m[1] {
				t.Errorf("%s --%s comes from %s, not from %s", verb.Name(), m[2], m[1], v)
			}
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("make %s passes %q on, and the verb has %q", verb.Name(), got, want)
		}
	}
	for verb := range recipe {
		t.Errorf("make calls %s, which is no verb", verb)
	}

	named := map[string][]string{}
	for _, m := range regexp.MustCompile(`echo "  ([A-Z_]+)=\S* +([a-z0-9, -]+):`).FindAllStringSubmatch(help, -1) {
		named[m[1]] = strings.Split(m[2], ", ")
	}
	for _, variable := range slices.Sorted(maps.Keys(used)) {
		slices.Sort(used[variable])
		if slices.Sort(named[variable]); !slices.Equal(named[variable], used[variable]) {
			t.Errorf("make help names %s for %q, and it is for %q", variable, named[variable], used[variable])
		}
		delete(named, variable)
	}
	for variable := range named {
		t.Errorf("make help names %s, which no target uses", variable)
	}
}

// TestMakeIgnoresEnvironment checks that an exported variable changes nothing.
func TestMakeIgnoresEnvironment(t *testing.T) {
	help, err := exec.Command("make", "-C", "..", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for _, m := range regexp.MustCompile(`(?m)^  ([A-Z_]+)=`).FindAllStringSubmatch(string(help), -1) {
		exported = append(exported, m[1]+"=from-environment")
	}
	if len(exported) < 20 {
		t.Fatalf("make help names only %q", exported)
	}
	for _, verb := range root().Commands() {
		if verb.Hidden || verb.Name() == "rebase" { // needs BASE
			continue
		}
		cmd := exec.Command("make", "-C", "..", "--dry-run", verb.Name())
		cmd.Env = append(os.Environ(), exported...)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "from-environment") {
			t.Errorf("make %s: %v, runs %q with exported variables", verb.Name(), err, out)
		}
	}
}

// TestPatterns checks that make passes regular expressions on as they are: it would take
// the $ at the end of one for the beginning of a variable.
func TestPatterns(t *testing.T) {
	const pattern = "^(a|b)$|^c$"
	for target, variable := range map[string]string{
		"nightly": "ONLY", "bench": "ONLY", "verify": "PATCH", "e2e": "FOCUS",
	} {
		out, err := exec.Command("make", "-C", "..", "--dry-run", target, variable+"="+pattern).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "'"+pattern+"'") {
			t.Errorf("make %s: %v, runs %q without %s", target, err, out, pattern)
		}
	}
}

// TestPaths checks that make passes paths on from the folder where it was started, though the program runs in another, and
// that a blank does not end one.
func TestPaths(t *testing.T) {
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for variable, target := range map[string]string{
		"SIGN_KEY": "release", "KUBE_PROXY_BASE": "release",
		"KUBERNETES_SRC": "apply", "WITH": "rebase",
	} {
		for path, want := range map[string]string{"/tmp/my dir/dist": "/tmp/my dir/dist", "my dir": top + "/my dir", "my /dir": top + "/my /dir"} {
			out, err := exec.Command("make", "-C", "..", "--dry-run", target, "FORECAST=1", variable+"="+path).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "='"+want+"'") {
				t.Errorf("make %s %s='%s': %v, runs %q without '%s'", target, variable, path, err, out, want)
			}
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
