package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// query is one of a rule or of a panel.
type query struct {
	where, expr string
	// labels are those that a result has to have.
	labels []string
	// mayBeEmpty is set for alerts.
	mayBeEmpty bool
}

// readRules parses a file of rules, as promtool check rules does.
func readRules(file string) (*rulefmt.RuleGroups, []error) {
	return rulefmt.ParseFile(file, false, model.UTF8Validation, promqlParser, promslog.NewNopLogger())
}

func ruleQueries(groups *rulefmt.RuleGroups) []query {
	var all []query
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			all = append(all, query{where: "rule " + rule.Record + rule.Alert, expr: rule.Expr, mayBeEmpty: rule.Alert != ""})
		}
	}
	return all
}

// dashboard is what promcheck reads of one.
type dashboard struct{ Panels []panel }

// panel is a graph, or a row: a title above others. Its position is in 24 columns.
type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []struct{ Value *float64 } }
		}
	}
	Targets []struct{ Expr, LegendFormat string }
}

// expr is that of a query, which looks back as far as rate says.
func (p panel) expr(target int, rate string) string {
	return strings.ReplaceAll(p.Targets[target].Expr, "$__rate_interval", rate)
}

var legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

func readDashboard(file string) (dashboard, error) {
	var d dashboard
	b, err := os.ReadFile(file)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return d, nil
}

func dashboardQueries(file string) ([]query, error) {
	d, err := readDashboard(file)
	if err != nil {
		return nil, err
	}
	var all []query
	for _, panel := range d.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			return nil, fmt.Errorf("%s: panel %q has no query", filepath.Base(file), panel.Title)
		}
		for i, target := range panel.Targets {
			q := query{where: "panel " + panel.Title, expr: panel.expr(i, "5m")}
			for _, m := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				q.labels = append(q.labels, m[1])
			}
			all = append(all, q)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no panels with queries", filepath.Base(file))
	}
	return all, nil
}
