package release

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"aead.dev/minisign"

	"capacityv2.internal/scripts/run"
)

// sumsName is the file with the sums of all others, in the format of sha256sum.
const sumsName = "SHA256SUMS"

// sumFolder returns the sums of all files in dir but for the list of them and its signature.
func sumFolder(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	sums := map[string]string{}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == sumsName || name == signatureName:
		case !e.Type().IsRegular():
			sums[name] = "(none: it is no file)"
		default:
			s, err := sum(filepath.Join(dir, name))
			if err != nil {
				return nil, err
			}
			sums[name] = s
		}
	}
	return sums, err
}

// sumsList lists sums, or other digests, one in a line with what it is of.
func sumsList(sums map[string]string) []byte {
	var b strings.Builder
	for _, name := range sortedKeys(sums) {
		fmt.Fprintf(&b, "%s  %s\n", sums[name], name)
	}
	return []byte(b.String())
}

// sumsLine has a file name that stays in its folder.
var sumsLine = regexp.MustCompile(`^([0-9a-f]{64})  ([^./\\][^/\\]*)$`)

// readSums reads the sums of the release in dir: file name to sum.
func readSums(dir string) (map[string]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		return nil, run.Refuse("no sums: "+err.Error(), "the folder of a release", "make release")
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(b)) {
		m := sumsLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || sums[m[2]] != "" {
			return nil, run.Refuse(fmt.Sprintf("%s holds the line %q", filepath.Join(dir, sumsName), strings.TrimSpace(line)),
				"a SHA-256, two blanks and a file name, each file once", "make release")
		}
		sums[m[2]] = m[1]
	}
	return sums, nil
}

// Verify checks the release in dir offline: the owner of the key has signed its sums, every
// file has its sum, none is missing or too many, and the provenance is that of these
// files. Without a key the signature is not looked at.
func Verify(dir string, key *minisign.PublicKey) error {
	if key != nil {
		if err := verifySignature(dir, *key); err != nil {
			return err
		}
	}
	want, err := readSums(dir)
	if err != nil {
		return err
	}
	got, err := sumFolder(dir)
	if err != nil {
		return err
	}
	var bad []string
	for _, name := range differing(want, got) {
		switch {
		case want[name] == "":
			bad = append(bad, name+" is not listed")
		case got[name] == "":
			bad = append(bad, name+" is missing")
		default:
			bad = append(bad, name+" has the SHA-256 "+got[name])
		}
	}
	if len(bad) == 0 {
		subjects, err := readSubjects(dir)
		if err != nil {
			return err
		}
		delete(want, provenanceName)
		for _, name := range differing(want, subjects) {
			bad = append(bad, provenanceName+" is not that of "+name)
		}
	}
	if len(bad) > 0 {
		return run.Refuse("the release in "+dir+" is not intact:\n    "+strings.Join(bad, "\n    "), "the files of "+sumsName, "make release")
	}
	return nil
}

// Compare checks that two releases are intact and have the same sums, whoever signed them.
// Where they differ, the error names the files, and for a tarball the members that differ.
func Compare(dirA, dirB string) error {
	if err := errors.Join(Verify(dirA, nil), Verify(dirB, nil)); err != nil {
		return err
	}
	a, errA := readSums(dirA)
	b, errB := readSums(dirB)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	var bad []string
	for _, name := range differing(a, b) {
		switch {
		case b[name] == "":
			bad = append(bad, name+" is only in "+dirA)
		case a[name] == "":
			bad = append(bad, name+" is only in "+dirB)
		default:
			bad = append(bad, name+" differs"+differingMembers(filepath.Join(dirA, name), filepath.Join(dirB, name)))
		}
	}
	if len(bad) > 0 {
		return run.Refuse("the releases in "+dirA+" and "+dirB+" differ:\n    "+strings.Join(bad, "\n    "), "equal sums: same inputs, same bytes", "")
	}
	return nil
}

// differing returns the keys whose values are not the same in both maps, sorted.
func differing(a, b map[string]string) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.DeleteFunc(sortedKeys(all), func(k string) bool { return a[k] == b[k] })
}

// maxMembers limits how many members of a tarball an error names.
const maxMembers = 10

// differingMembers names the members in which two tarballs differ.
func differingMembers(pathA, pathB string) string {
	a, errA := memberSums(pathA)
	b, errB := memberSums(pathB)
	if errA != nil || errB != nil {
		return "" // no tarballs
	}
	names := differing(a, b)
	more := ""
	if len(names) > maxMembers {
		more = fmt.Sprintf(", and %d more", len(names)-maxMembers)
		names = names[:maxMembers]
	}
	return " in " + strings.Join(names, ", ") + more
}

// memberSums returns a sum over header and content for each member of a tarball.
func memberSums(path string) (map[string]string, error) {
	sums := map[string]string{}
	err := readTarGz(path, func(h *tar.Header, r io.Reader) error {
		s := sha256.New()
		fmt.Fprintf(s, "%o %d %d %d %s %v\n", h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), h.Linkname, h.PAXRecords)
		_, err := io.Copy(s, r)
		sums[h.Name] = string(s.Sum(nil))
		return err
	})
	return sums, err
}
