package verbs

import (
	"errors"
	"path/filepath"

	"capacityv2.internal/scripts/toolchain"
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
	return toolchain.WriteOverlay(dir, replace)
}
