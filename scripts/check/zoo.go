package check

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// zooPage is the test that docs/drivers.md has all shapes of drivers.
const zooPage = "^TestGuides$"

// zoo plays each shape of drivers with long loads, and writes the table of docs/drivers.md.
func zoo(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	results := filepath.Join(filepath.Dir(s.LogPath), "zoo.json")
	if err := os.RemoveAll(results); err != nil {
		return err
	}
	if err := integration(ctx, ws, s, nil, "-count=1", "./zoo", "-skip", zooPage, "-v", "-parallel", sideBySide, "-timeout", "2h", "-zoo.long", "-zoo.results="+results); err != nil {
		return err
	}
	content, err := os.ReadFile(results)
	if err != nil {
		return err
	}
	table, err := zooTable(content)
	if err != nil {
		return fmt.Errorf("%s: %w", results, err)
	}
	if err := files.UpdateSection(filepath.Join(ws.Root, "docs", "drivers.md"), "make test LONG=1", table); err != nil {
		return err
	}
	return integration(ctx, ws, s, nil, "-count=1", "./zoo", "-run", zooPage)
}

// zooTable returns the table of the results.
func zooTable(results []byte) (string, error) {
	var rows []struct{ Shape, Seen, Stock, Gate, Advice string }
	if err := json.Unmarshal(results, &rows); err != nil {
		return "", err
	}
	table := "| shape | seen in | stock | with the gate | what its author should do |\n|" + strings.Repeat(" --- |", 5) + "\n"
	for _, r := range rows {
		table += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.Shape, r.Seen, r.Stock, r.Gate, r.Advice)
	}
	return table, nil
}
