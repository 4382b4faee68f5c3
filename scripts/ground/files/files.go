// SPDX-License-Identifier: Apache-2.0

// Package files reads lists in YAML, and writes files whose bytes depend on nothing but their content: JSON, the part of a
// document that a verb writes, tarballs and container images.
package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sigs.k8s.io/yaml"
)

// Update writes content to the file at path, unless that is what it has.
func Update(path string, content []byte) (changed bool, err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	return true, os.WriteFile(path, content, 0o644)
}

// Copy writes the content of the file at path to w, such as a hash.
func Copy(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Hash is the SHA-256, in hex, over names and contents of files. One that is missing counts as empty.
func Hash(from fs.FS, names ...string) (string, error) {
	hash := sha256.New()
	for _, name := range names {
		content, err := fs.ReadFile(from, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// ReadJSON reads a file that [WriteJSON] wrote, or another program.
func ReadJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// WriteJSON replaces the file at path by v, indented. It does so in one step: nobody
// finds a half-written one.
func WriteJSON(path string, v any) error {
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// ReadYAML reads a file of ours into a value. A field that the value does not have is an error.
func ReadYAML(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
