package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func check(folder, scrapes string) error {
	groups, errs := readRules(filepath.Join(folder, "rules.yaml"))
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	queries, err := dashboardQueries(filepath.Join(folder, "dashboard.json"))
	if err != nil {
		return err
	}
	d, _, now, err := readScrapes(scrapes)
	if err != nil {
		return err
	}
	// Rules come first: the results of some are what others ask for.
	for _, group := range groups.Groups {
		if err := d.record(group, now); err != nil {
			return err
		}
	}
	queries = append(ruleQueries(groups), queries...)
	for _, q := range queries {
		if err := d.ask(q, now); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", q.where, err))
		}
	}
	fmt.Printf("%d queries, %d series\n", len(queries), len(d))
	return errors.Join(errs...)
}

// record evaluates the recording rules of a group.
func (d database) record(group rulefmt.RuleGroup, at time.Time) error {
	for _, rule := range group.Rules {
		if rule.Record == "" {
			continue
		}
		result, err := d.query(rule.Expr, at)
		if err != nil {
			return fmt.Errorf("rule %s: %w", rule.Record, err)
		}
		for _, sample := range result {
			d.add(labels.NewBuilder(sample.Metric).Set(model.MetricNameLabel, rule.Record).Labels(), at, sample.F)
		}
	}
	return nil
}

// ask evaluates a query. Each of its selectors has to match a series, with the labels by which
// the query groups.
func (d database) ask(q query, now time.Time) error {
	expr, err := promqlParser.ParseExpr(q.expr)
	if err != nil {
		return err
	}
	var errs []error
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			errs = append(errs, d.find(selector, path))
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	result, err := d.query(q.expr, now)
	if err != nil {
		return err
	}
	if len(result) == 0 && !q.mayBeEmpty {
		return fmt.Errorf("no result: %s", q.expr)
	}
	for _, sample := range result {
		for _, label := range q.labels {
			if sample.Metric.Get(label) == "" {
				return fmt.Errorf("the result %s has no label %s, which the legend names", sample.Metric, label)
			}
		}
	}
	return nil
}

// find checks that a selector matches, and that one of its series has all labels of the
// aggregations around it.
func (d database) find(selector *parser.VectorSelector, path []parser.Node) error {
	series := d.selected(selector.LabelMatchers...)
	if len(series) == 0 {
		return fmt.Errorf("no component has %s", selector)
	}
	for _, node := range path {
		aggregation, ok := node.(*parser.AggregateExpr)
		if !ok || aggregation.Without {
			continue
		}
		for _, label := range aggregation.Grouping {
			if !hasLabel(series[0].Metric, label) {
				return fmt.Errorf("%s has no label %s", selector, label)
			}
		}
	}
	return nil
}

func hasLabel(metric labels.Labels, name string) bool { return metric.Get(name) != "" }
