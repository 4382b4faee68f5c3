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
type dashboard struct {
	Panels []struct {
		Type, Title string
		Targets     []struct{ Expr, LegendFormat string }
	}
}

var legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

func dashboardQueries(file string) ([]query, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d dashboard
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	var all []query
	for _, panel := range d.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			return nil, fmt.Errorf("%s: panel %q has no query", filepath.Base(file), panel.Title)
		}
		for _, target := range panel.Targets {
			q := query{where: "panel " + panel.Title, expr: strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")}
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
