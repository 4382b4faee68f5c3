package check

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// zooPage is the test that docs/drivers.md has all shapes of drivers.
const zooPage = "^TestGuides$"

// zoo plays each shape of drivers with long loads, and writes the table of docs/drivers.md.
func zoo(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return writePage(ctx, ws, s, "docs/drivers.md", zooPage, "-zoo.results", zooTable, "./zoo", "-timeout", "2h", "-zoo.long")
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
