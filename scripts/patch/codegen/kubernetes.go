// SPDX-License-Identifier: Apache-2.0

package codegen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// goFlags are those of every other build, so that its cache serves, and module mode even where the tree has a vendor
// folder.
const goFlags = "GOFLAGS=" + toolchain.Flags + " -mod=readonly"

// output is a folder that upstream's .gitignore ignores.
func (r *Run) output(name string) string { return filepath.Join(r.dir, "_output", name) }

// excludes names what is put beside the sources: upstream's scripts search every file that git does not ignore.
func (r *Run) excludes() string { return r.output("exclude") }

// equipKubernetes puts in place what upstream's scripts would download, and fetches the modules that they then use offline.
func (r *Run) equipKubernetes(ctx context.Context, s *run.Step) error {
	if err := requireAPIPort(); err != nil {
		return err
	}
	if err := toolchain.BuildTools(ctx, r.ws, s, toolchain.Etcd); err != nil {
		return err
	}
	if err := os.MkdirAll(r.output("tmp"), 0o755); err != nil {
		return err
	}
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		return err
	}
	err = errors.Join(write(r.excludes(), "/vendor/\n/hack/tools/\n", 0o644), r.install("protoc", protocScript, protoc),
		r.install("etcd", etcdScript, filepath.Join(r.ws.Bin(), "etcd")), r.installHackTools())
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"list", "-deps", "k8s.io/code-generator/cmd/...", "k8s.io/kube-openapi/cmd/openapi-gen",
			"./cmd/genswaggertypedocs", "./pkg/generated/openapi/cmd/models-schema"},
		{"-C", "hack/tools", "list", "-deps", "golang.org/x/tools/cmd/goimports"},
	} {
		if err := toolchain.GoEnv(ctx, r.dir, []string{goFlags}, s.Log, args...); err != nil {
			return err
		}
	}
	if err := r.installGogoProto(ctx, s); err != nil {
		return err
	}
	r.env, err = r.kubernetesEnv(ctx)
	return err
}

// Programs of the machine in the place of those that upstream's scripts install, at a version and a path. Its protoc
// answers the question for its version as upstream's does: Debian's 3.21 and that one parse the generated .proto files
// alike.
const (
	protocScript = "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'libprotoc %s'; exit 0; fi\nexec '%s' \"$@\"\n"
	etcdScript   = "#!/bin/sh\n# for %s\nexec '%s' \"$@\"\n"
)

// install puts a program where upstream's scripts install their own.
func (r *Run) install(name, script, program string) error {
	version, err := r.pinnedVersion("hack/lib/"+name+".sh", strings.ToUpper(name)+"_VERSION")
	if err != nil {
		return err
	}
	thirdParty, folder := filepath.Join(r.dir, "third_party"), fmt.Sprintf("%s-v%s-%s-%s", name, version, runtime.GOOS, runtime.GOARCH)
	if err := write(filepath.Join(thirdParty, folder, name), fmt.Sprintf(script, version, program), 0o755); err != nil {
		return err
	}
	return os.Symlink(folder, filepath.Join(thirdParty, name))
}

// pinnedVersion reads a variable such as PROTOC_VERSION=23.4, ${PROTOC_VERSION:-23.4} or PROTOC_VER := 23.4 from one of
// upstream's files.
func (r *Run) pinnedVersion(file, variable string) (string, error) {
	content, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`(?m)^` + variable + `(?: := |=(?:\$\{` + variable + `:-)?"?)([0-9][0-9A-Za-z.+-]*)`).FindSubmatch(content)
	if m == nil {
		return "", fmt.Errorf("%s sets no %s: upstream's file changed", file, variable)
	}
	return string(m[1]), nil
}

// installHackTools puts our pinned module in the place of upstream's hack/tools, a nested module that the module of the
// tree does not have; a checkout does.
func (r *Run) installHackTools() error {
	dir := filepath.Join(r.dir, "hack", "tools")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return nil
	}
	if err := os.CopyFS(dir, os.DirFS(r.ws.Pin("hack-tools"))); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	// Without it the go command takes the tree's.
	return write(filepath.Join(dir, "go.work"), fmt.Sprintf("%s\n\nuse .\n", regexp.MustCompile(`(?m)^go .*$`).Find(mod)), 0o644)
}

// installGogoProto puts gogo.proto where go-to-protobuf looks for it, unless a checkout has upstream's vendor folder. It is
// the only file for which upstream's scripts need one.
func (r *Run) installGogoProto(ctx context.Context, s *run.Step) error {
	const module, file = "github.com/gogo/protobuf", "gogoproto/gogo.proto"
	to := filepath.Join(r.dir, "vendor", module, file)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	out, err := run.Cmd{Dir: r.dir, Env: slices.Concat(toolchain.Env(), toolchain.InTree(r.dir), []string{goFlags}), Log: s.Log, Name: "go", Args: []string{"list", "-m", "-f", "{{.Dir}}", module}}.Output(ctx)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), file))
	if err != nil {
		return err
	}
	return write(to, string(content), 0o644)
}

// kubernetesEnv is the environment of upstream's scripts.
func (r *Run) kubernetesEnv(ctx context.Context) ([]string, error) {
	env, err := toolchain.UpstreamEnv(ctx)
	if err != nil {
		return nil, err
	}
	etcdPort, err := freePort()
	if err != nil {
		return nil, err
	}
	return append(append(env, toolchain.InTree(r.dir)...), goFlags, "TERM=dumb", "GOBIN="+r.output("bin"), "TMPDIR="+r.output("tmp"),
		// A new violation of the API rules is a difference to be looked at, as any.
		"UPDATE_API_KNOWN_VIOLATIONS=true",
		// As upstream's main script sets them for the staging modules' own.
		"CODEGEN_PKG="+filepath.Join(r.dir, "staging", "src", "k8s.io", "code-generator"),
		"API_KNOWN_VIOLATIONS_DIR="+filepath.Join(r.dir, "api", "api-rules"),
		"ETCD_HOST=127.0.0.1", "ETCD_PORT="+strconv.Itoa(etcdPort), "ETCD_LOGFILE="+r.output("etcd.log"),
		"API_HOST=127.0.0.1", "API_PORT="+strconv.Itoa(apiPort), "API_LOGFILE="+r.output("kube-apiserver.log"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.excludesFile", "GIT_CONFIG_VALUE_0="+r.excludes(),
	), nil
}

// apiPort is upstream's: api/discovery/api.json holds it.
const apiPort = 8050

// requireAPIPort refuses when the kube-apiserver that tells its API cannot listen where upstream's listens.
func requireAPIPort() error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(apiPort)))
	if err != nil {
		return run.Refuse(fmt.Sprintf("port %d is in use: %v", apiPort, err),
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
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func write(file, content string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), mode)
}
