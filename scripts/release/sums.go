package release

import (
	"archive/tar"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/progress"
)

// sumsFile is the content of SHA256SUMS, in sha256sum's format.
func sumsFile(artefacts []Artefact) []byte {
	var b strings.Builder
	for _, a := range slices.SortedFunc(slices.Values(artefacts), func(a, b Artefact) int { return strings.Compare(a.Name, b.Name) }) {
		fmt.Fprintf(&b, "%s  %s\n", a.SHA256, a.Name)
	}
	return []byte(b.String())
}

// readSums reads the SHA256SUMS of dir: file name to sum.
func readSums(dir string) (map[string]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, SumsName))
	if err != nil {
		return nil, progress.Refuse("no sums: "+err.Error(), "the folder of a release", "make release")
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(b)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != 32 || !safeName(name) || sums[name] != "" {
			return nil, progress.Refuse(fmt.Sprintf("%s holds the line %q", filepath.Join(dir, SumsName), strings.TrimSpace(line)),
				"a SHA-256, two blanks and a file name, each file once", "make release")
		}
		sums[name] = sum
	}
	return sums, nil
}

// Verify checks the release in dir offline: every file has its sum, no file is
// missing or too many, and the manifest names the same sums.
func Verify(dir string) error {
	sums, err := readSums(dir)
	if err != nil {
		return err
	}
	var bad []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := sums[e.Name()]; !ok && e.Name() != SumsName {
			bad = append(bad, e.Name()+" is not listed")
		}
	}
	for _, name := range sortedKeys(sums) {
		a, err := sumFile(dir, name)
		switch {
		case os.IsNotExist(err):
			bad = append(bad, name+" is missing")
		case err != nil:
			return err
		case a.SHA256 != sums[name]:
			bad = append(bad, name+" has the SHA-256 "+a.SHA256)
		}
	}
	if len(bad) == 0 {
		m, err := ReadManifest(dir)
		if err != nil {
			return err
		}
		named := map[string]bool{ManifestName: true}
		for _, a := range m.Artefacts {
			named[a.Name] = true
			if sums[a.Name] != a.SHA256 {
				bad = append(bad, a.Name+" has another sum in "+ManifestName)
			}
		}
		for _, name := range sortedKeys(sums) {
			if !named[name] {
				bad = append(bad, name+" is not in "+ManifestName)
			}
		}
	}
	if len(bad) > 0 {
		return progress.Refuse("the release in "+dir+" is not intact:\n    "+strings.Join(bad, "\n    "), "the files of "+SumsName, "make release")
	}
	return nil
}

// ReadManifest reads the manifest of the release in dir.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	b, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w", filepath.Join(dir, ManifestName), err)
	}
	return m, nil
}

// Compare checks that two releases are intact and have the same SHA256SUMS. Where
// they differ, the error names the files, and for a tarball the members that differ.
func Compare(dirA, dirB string) error {
	if err := errors.Join(Verify(dirA), Verify(dirB)); err != nil {
		return err
	}
	a, err := readSums(dirA)
	if err != nil {
		return err
	}
	b, err := readSums(dirB)
	if err != nil {
		return err
	}
	var bad []string
	for _, name := range sortedKeys(a) {
		switch {
		case b[name] == "":
			bad = append(bad, name+" is only in "+dirA)
		case a[name] != b[name]:
			bad = append(bad, name+" differs")
			for _, m := range differing(filepath.Join(dirA, name), filepath.Join(dirB, name)) {
				bad = append(bad, "  "+m)
			}
		}
	}
	for _, name := range sortedKeys(b) {
		if a[name] == "" {
			bad = append(bad, name+" is only in "+dirB)
		}
	}
	if len(bad) > 0 {
		return progress.Refuse("the releases in "+dirA+" and "+dirB+" differ:\n    "+strings.Join(bad, "\n    "), "equal sums: same inputs, same bytes", "")
	}
	return nil
}

// maxDiffering limits how many members of a tarball an error names.
const maxDiffering = 10

// differing names the members in which two tarballs differ.
func differing(pathA, pathB string) []string {
	if !strings.HasSuffix(pathA, ".tar.gz") {
		return nil
	}
	a, errA := memberSums(pathA)
	b, errB := memberSums(pathB)
	if errA != nil || errB != nil {
		return []string{fmt.Sprintf("(unreadable: %v, %v)", errA, errB)}
	}
	var out []string
	for _, n := range sortedKeys(a) {
		if a[n] != b[n] {
			out = append(out, n)
		}
	}
	for _, n := range sortedKeys(b) {
		if a[n] == "" {
			out = append(out, n)
		}
	}
	if len(out) > maxDiffering {
		out = append(out[:maxDiffering], fmt.Sprintf("and %d more", len(out)-maxDiffering))
	}
	return out
}

// memberSums returns a sum over header and content for each member of a tarball.
func memberSums(path string) (map[string]string, error) {
	sums := map[string]string{}
	err := readTarGz(path, func(h *tar.Header, r io.Reader) error {
		s := newSummer(io.Discard)
		fmt.Fprintf(s, "%o %d %d %d %s %v\n", h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), h.Linkname, h.PAXRecords)
		_, err := io.Copy(s, r)
		sums[h.Name] = s.artefact("").SHA256
		return err
	})
	return sums, err
}
