package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// BuildComponents builds the named programs of a project's patched tree for this
// machine into out, stamped with our version. Programs that out holds already,
// from the same commits with the same flags, are left as they are.
func BuildComponents(ctx context.Context, ws workspace.Workspace, project string, log io.Writer, out string, programs ...string) error {
	p, err := ws.Project(project)
	if err != nil {
		return err
	}
	stamp, err := ReadStamp(ctx, ws, p)
	if err != nil {
		return err
	}
	return Build(ctx, p.Tree(), stamp, Host(), log, out, programs...)
}

// Build is [BuildComponents] for any tree, stamp and platform.
func Build(ctx context.Context, tree string, stamp Stamp, p Platform, log io.Writer, out string, programs ...string) error {
	inputs, err := buildInputs(ctx, stamp, p)
	if err != nil {
		return err
	}
	built := readBuilt(out)
	var todo, packages []string
	for _, name := range programs {
		t, err := target(stamp.Project, name)
		if err != nil {
			return err
		}
		// Nothing says what a dirty tree held at the last build.
		if len(stamp.Dirty) == 0 && built.holds(out, p.file(name), inputs) {
			continue
		}
		// The go command overwrites programs only, not what a broken copy left.
		if err := os.RemoveAll(filepath.Join(out, p.file(name))); err != nil {
			return err
		}
		todo = append(todo, p.file(name))
		packages = append(packages, t)
	}
	if len(todo) == 0 {
		fmt.Fprintf(log, "# nothing to build: %s holds %s\n", out, strings.Join(programs, " "))
		return nil
	}
	err = toolchain.BuildFor(ctx, tree, out, stamp.Ldflags(), []string{"GOOS=" + p.OS, "GOARCH=" + p.Arch}, log, packages...)
	if err != nil {
		return err
	}
	for _, f := range todo {
		if err := built.record(out, f, inputs); err != nil {
			return err
		}
	}
	return built.write(out)
}

// buildInputs hashes what the bytes of a program depend on: the commits, the
// version (in the flags), the platform and the Go release.
func buildInputs(ctx context.Context, stamp Stamp, p Platform) (string, error) {
	goVersion, err := toolchain.GoValue(ctx, "GOVERSION")
	if err != nil {
		return "", err
	}
	in := []string{stamp.Ldflags(), stamp.Commit, stamp.workspace, p.String(), goVersion, toolchain.Tags}
	for _, name := range sortedKeys(stamp.linked) {
		in = append(in, name+" "+stamp.linked[name])
	}
	h := sha256.Sum256([]byte(strings.Join(append(in, toolchain.Env()...), "\n")))
	return hex.EncodeToString(h[:]), nil
}

// builtFile records, beside the programs, what they were built from.
const builtFile = ".built.json"

// built maps the file name of a program to what it was built from.
type built map[string]builtProgram

type builtProgram struct {
	Inputs string `json:"inputs"`
	// Size and ModTime (Unix, ns) notice a program that someone replaced.
	Size    int64 `json:"size"`
	ModTime int64 `json:"modTime"`
}

// readBuilt reads the record in out. A missing or damaged one means that
// nothing is known, so everything is built.
func readBuilt(out string) built {
	b := built{}
	data, err := os.ReadFile(filepath.Join(out, builtFile))
	if err != nil || json.Unmarshal(data, &b) != nil {
		return built{}
	}
	return b
}

func (b built) holds(out, file, inputs string) bool {
	fi, err := os.Stat(filepath.Join(out, file))
	return err == nil && b[file] == builtProgram{inputs, fi.Size(), fi.ModTime().UnixNano()}
}

func (b built) record(out, file, inputs string) error {
	fi, err := os.Stat(filepath.Join(out, file))
	if err != nil {
		return err
	}
	b[file] = builtProgram{inputs, fi.Size(), fi.ModTime().UnixNano()}
	return nil
}

func (b built) write(out string) error { return files.WriteJSON(filepath.Join(out, builtFile), b) }
