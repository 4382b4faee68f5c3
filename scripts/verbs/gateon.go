package verbs

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// schedulingSuite is upstream's suite of volume scheduling, by its folder in the
// tree.
const schedulingSuite = "test/integration/volumescheduling"

// gateOnOverlay adds the files of schedulingSuite to our package of the same
// name, in which the gate is on, for the go command alone: the overlay is written
// to dir. It returns the path of the file.
func (a *App) gateOnOverlay(dir string) (string, error) {
	suite := filepath.Join(a.WS.Tree(), schedulingSuite)
	files, err := filepath.Glob(filepath.Join(suite, "*.go"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", errors.New("no Go files in " + suite)
	}
	replace := map[string]string{}
	for _, file := range files {
		replace[filepath.Join(a.WS.Root, "test-integration", filepath.Base(suite), filepath.Base(file))] = file
	}
	content, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, content, 0o644)
}
