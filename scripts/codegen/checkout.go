package codegen

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// goFlags are those of every other build, so that its cache serves, and module
// mode even where the tree has a vendor folder.
const goFlags = "GOFLAGS=-trimpath -buildvcs=false -mod=readonly"

// checkout is the work tree in which the generators run: upstream's scripts
// delete outputs before they write them, and want things beside the sources.
type checkout struct {
	dir  string
	tree gitrepo.Repo // the user's
}

func (c *checkout) repo() gitrepo.Repo { return gitrepo.Open(c.dir, nil) }

// output is a folder that upstream's .gitignore ignores.
func (c *checkout) output(name string) string { return filepath.Join(c.dir, "_output", name) }

// excludes names what we add beside the sources: upstream's scripts search
// every file that git does not ignore.
const excludes = "/vendor/\n/hack/tools/\n"

// create makes the work tree anew at the tree's HEAD.
func (c *checkout) create(ctx context.Context, s *progress.Step) error {
	head, err := c.tree.Rev(ctx, "HEAD")
	if err != nil {
		return err
	}
	if err := base.AddWorktree(ctx, gitrepo.Open(c.tree.Dir, s.Log), c.dir, head); err != nil {
		return err
	}
	if err := os.MkdirAll(c.output("tmp"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(c.output("exclude"), []byte(excludes), 0o644)
}

// tools puts in place what upstream's scripts would download, and fetches the
// modules that they then use offline. pin is the folder of our hack/tools.
func (c *checkout) tools(ctx context.Context, pin string, log io.Writer) error {
	if err := c.linkProtoc(); err != nil {
		return err
	}
	if err := c.hackTools(pin); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"list", "-deps", "k8s.io/code-generator/cmd/...", "k8s.io/kube-openapi/cmd/openapi-gen",
			"./cmd/genswaggertypedocs", "./pkg/generated/openapi/cmd/models-schema"},
		{"-C", "hack/tools", "list", "-deps", "golang.org/x/tools/cmd/goimports"},
	} {
		if err := toolchain.GoEnv(ctx, c.dir, []string{goFlags}, log, args...); err != nil {
			return err
		}
	}
	return c.gogoProto(ctx, log)
}

// gogoProto puts gogo.proto where go-to-protobuf looks for it. It is the only
// file for which upstream's scripts need a vendor folder.
func (c *checkout) gogoProto(ctx context.Context, log io.Writer) error {
	const module, file = "github.com/gogo/protobuf", "gogoproto/gogo.proto"
	to := filepath.Join(c.dir, "vendor", module, file)
	if _, err := os.Stat(to); err == nil {
		return nil // a checkout with upstream's vendor folder
	}
	out, err := run.Cmd{
		Dir: c.dir, Env: append(toolchain.Env(), goFlags), Log: log,
		Name: "go", Args: []string{"list", "-m", "-f", "{{.Dir}}", module},
	}.Output(ctx)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), file))
	if err != nil {
		return err
	}
	return write(to, b, 0o644)
}

// hackTools puts our pinned module in the place of upstream's hack/tools, a
// nested module that the module of the tree does not have.
func (c *checkout) hackTools(pin string) error {
	dir := filepath.Join(c.dir, "hack", "tools")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return nil // a checkout with upstream's own
	}
	var goLine []byte
	for _, f := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(pin, f))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(dir, f), b, 0o644); err != nil {
			return err
		}
		if f == "go.mod" {
			goLine = regexp.MustCompile(`(?m)^go .*$`).Find(b)
		}
	}
	// Without it the go command takes the tree's.
	return write(filepath.Join(dir, "go.work"), append(goLine, "\n\nuse .\n"...), 0o644)
}

// linkProtoc puts the machine's protoc where upstream's script installs its
// own, and lets it answer the question for its version as that one does. Debian's
// 3.21 and upstream's 23.4 parse the generated .proto files alike.
func (c *checkout) linkProtoc() error {
	v, err := c.pinnedVersion("hack/lib/protoc.sh", "PROTOC_VERSION")
	if err != nil {
		return err
	}
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		return nil // no generator of this run needs it
	}
	wrapper := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'libprotoc %s'; exit 0; fi\nexec '%s' \"$@\"\n", v, protoc)
	name := fmt.Sprintf("protoc-v%s-%s-%s", v, runtime.GOOS, runtime.GOARCH)
	if err := write(filepath.Join(c.dir, "third_party", name, "protoc"), []byte(wrapper), 0o755); err != nil {
		return err
	}
	return os.Symlink(name, filepath.Join(c.dir, "third_party", "protoc"))
}

// linkEtcd puts our etcd where upstream's script installs its own.
func (c *checkout) linkEtcd(etcd string) error {
	v, err := c.pinnedVersion("hack/lib/etcd.sh", "ETCD_VERSION")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("etcd-v%s-%s-%s", v, runtime.GOOS, runtime.GOARCH)
	dir := filepath.Join(c.dir, "third_party", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(etcd, filepath.Join(dir, "etcd")); err != nil {
		return err
	}
	return os.Symlink(name, filepath.Join(c.dir, "third_party", "etcd"))
}

// pinnedVersion reads a variable such as PROTOC_VERSION=23.4, or with upstream's
// ${PROTOC_VERSION:-23.4}, from one of upstream's shell files.
func (c *checkout) pinnedVersion(file, variable string) (string, error) {
	b, err := os.ReadFile(filepath.Join(c.dir, file))
	if err != nil {
		return "", err
	}
	v, ok := shellDefault(string(b), variable)
	if !ok {
		return "", fmt.Errorf("%s sets no %s: upstream's script changed", file, variable)
	}
	return v, nil
}

func shellDefault(sh, variable string) (string, bool) {
	m := regexp.MustCompile(`(?m)^` + variable + `=(?:\$\{` + variable + `:-)?"?([0-9][0-9A-Za-z.+-]*)`).FindStringSubmatch(sh)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// env is the environment of upstream's scripts.
func (c *checkout) env(ctx context.Context) ([]string, error) {
	env, err := toolchain.UpstreamEnv(ctx)
	if err != nil {
		return nil, err
	}
	env = append(env, goFlags)
	etcdPort, err := freePort()
	if err != nil {
		return nil, err
	}
	return append(env,
		"TERM=dumb", "GOBIN="+c.output("bin"), "TMPDIR="+c.output("tmp"),
		// A new violation of the API rules is a difference to be looked at, as any.
		"UPDATE_API_KNOWN_VIOLATIONS=true",
		// As upstream's main script sets them for the staging modules' own.
		"CODEGEN_PKG="+filepath.Join(c.dir, staging, "code-generator"),
		"API_KNOWN_VIOLATIONS_DIR="+filepath.Join(c.dir, "api", "api-rules"),
		"ETCD_HOST=127.0.0.1", "ETCD_PORT="+strconv.Itoa(etcdPort), "ETCD_LOGFILE="+c.output("etcd.log"),
		"API_HOST=127.0.0.1", "API_PORT="+strconv.Itoa(apiPort), "API_LOGFILE="+c.output("kube-apiserver.log"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.excludesFile", "GIT_CONFIG_VALUE_0="+c.output("exclude"),
	), nil
}

// apiPort is upstream's: api/discovery/api.json holds it.
const apiPort = 8050

// requireAPIPort refuses when the kube-apiserver that tells its API cannot
// listen where upstream's listens.
func requireAPIPort() error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(apiPort)))
	if err != nil {
		return progress.Refuse(fmt.Sprintf("port %d is in use: %v", apiPort, err),
			"it free: the kube-apiserver whose API documents are generated writes it into them",
			fmt.Sprintf("ss -ltnp sport = :%d, and end that program", apiPort))
	}
	return l.Close()
}

// freePort returns a loopback port that is free now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// run calls one of upstream's scripts, and says what it generates.
func (c *checkout) run(ctx context.Context, sc script, s *progress.Step) error {
	env, err := c.env(ctx)
	if err != nil {
		return err
	}
	lines := statusLines(func(l string) { s.Sayf("%s", l) })
	return run.Cmd{
		Dir: filepath.Join(c.dir, sc.dir), Env: env, Log: io.MultiWriter(s.Log, lines),
		Name: "bash", Args: append([]string{sc.path}, sc.args...),
	}.Run(ctx)
}

var statusLine = regexp.MustCompile(`^\+\+\+ \[[0-9 :]+\] ((?:Generating|Starting|Building) .*)$`)

// statusLines passes on upstream's lines about what is being generated.
func statusLines(say func(string)) *run.Lines {
	return &run.Lines{Each: func(line string) {
		if m := statusLine.FindStringSubmatch(line); m != nil {
			say(m[1])
		}
	}}
}

func write(file string, b []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, b, mode)
}
