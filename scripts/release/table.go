package release

import (
	"slices"
	"strings"

	"capacityv2.internal/scripts/workspace"
)

// Table says which upstream versions each release is made of. The release that ws makes is
// the first row; the others are those of the table in text.
func Table(ws workspace.Workspace, text string) (string, error) {
	v, err := ReadVersion(ws)
	if err != nil {
		return "", err
	}
	projects, err := ws.Projects()
	if err != nil {
		return "", err
	}
	slices.Reverse(projects) // Kubernetes first
	head, row := []string{"release"}, []string{v.String()}
	for _, p := range projects {
		base, err := projectVersion(ws, p)
		if err != nil {
			return "", err
		}
		head, row = append(head, p.Title), append(row, base.Base)
	}
	table := tableRow(head) + tableRow(slices.Repeat([]string{"---"}, len(head))) + tableRow(row)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| v") && !strings.HasPrefix(line, "| "+v.String()+" |") {
			table += line
		}
	}
	return table, nil
}

func tableRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
