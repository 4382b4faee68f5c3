// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Picture is drawn from a raw file of docs/benchmarks, beside it.
type Picture struct {
	File, Raw string
	draw      func(raw []byte) ([]byte, error)
}

// Pictures are those of the page that can be measured again.
var Pictures = []Picture{
	{File: "filter-pass.svg", Raw: "scheduler.txt", draw: drawFilterPass},
	{File: "pods-per-second.svg", Raw: "scheduler.txt", draw: drawPodsPerSecond},
}

// Draw returns the picture as SVG. dir has the raw file.
func (p Picture) Draw(dir string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(dir, p.Raw))
	if err != nil {
		return nil, err
	}
	svg, err := p.draw(raw)
	if err != nil {
		return nil, fmt.Errorf("%s from %s: %w", p.File, p.Raw, err)
	}
	return svg, nil
}

// DrawAll writes all pictures to dir, which has the raw files.
func DrawAll(dir string) error {
	var all error
	for _, p := range Pictures {
		svg, err := p.Draw(dir)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, p.File), svg, 0o644)
		}
		all = errors.Join(all, err)
	}
	return all
}
