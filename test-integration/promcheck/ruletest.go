package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v3"
)

// ruleTests is what promcheck reads of a file for promtool test rules.
type ruleTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []ruleTest     `yaml:"tests"`
}

type ruleTest struct {
	Name        string         `yaml:"name"`
	Interval    model.Duration `yaml:"interval"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Alerts []struct {
		Name     string         `yaml:"alertname"`
		EvalTime model.Duration `yaml:"eval_time"`
		Want     []alert        `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
	Expressions []struct {
		Expr     string         `yaml:"expr"`
		EvalTime model.Duration `yaml:"eval_time"`
		Want     []struct {
			Labels string  `yaml:"labels"`
			Value  float64 `yaml:"value"`
		} `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
}

// alert is one that fires, without its name.
type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// testRules runs the tests of a file. Each alert has to be in one that wants it to fire.
func testRules(groups *rulefmt.RuleGroups, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var tests ruleTests
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	if err := decoder.Decode(&tests); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	tested := map[string]bool{}
	for _, test := range tests.Tests {
		if err := test.run(groups, time.Duration(tests.EvaluationInterval)); err != nil {
			errs = append(errs, fmt.Errorf("test of rules %q: %w", test.Name, err))
		}
		for _, a := range test.Alerts {
			tested[a.Name] = tested[a.Name] || len(a.Want) > 0
		}
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" && !tested[rule.Alert] {
				errs = append(errs, fmt.Errorf("alert %s: no test has it fire", rule.Alert))
			}
		}
	}
	return errors.Join(errs...)
}

func (t ruleTest) run(groups *rulefmt.RuleGroups, interval time.Duration) error {
	d := database{}
	for _, input := range t.InputSeries {
		metric, values, err := promqlParser.ParseSeriesDesc(input.Series + " " + input.Values)
		if err != nil {
			return err
		}
		for i, v := range values {
			if !v.Omitted {
				d.add(metric, time.Unix(0, 0).Add(time.Duration(i)*time.Duration(t.Interval)), v.Value)
			}
		}
	}
	end := time.Duration(0)
	for _, a := range t.Alerts {
		end = max(end, time.Duration(a.EvalTime))
	}
	for _, e := range t.Expressions {
		end = max(end, time.Duration(e.EvalTime))
	}
	firing := map[time.Duration]map[string][]alert{}
	since := map[string]time.Time{}
	for at := time.Duration(0); at <= end; at += interval {
		alerts, err := d.evaluate(groups, time.Unix(0, 0).Add(at), since)
		if err != nil {
			return err
		}
		firing[at] = alerts
	}
	var errs []error
	for _, a := range t.Alerts {
		got := firing[time.Duration(a.EvalTime)][a.Name]
		if len(got)+len(a.Want) > 0 && !reflect.DeepEqual(got, a.Want) {
			errs = append(errs, fmt.Errorf("alert %s after %s is %+v, want %+v", a.Name, a.EvalTime, got, a.Want))
		}
	}
	return errors.Join(append(errs, t.expressions(d)...)...)
}

func (t ruleTest) expressions(d database) []error {
	var errs []error
	for _, e := range t.Expressions {
		got, err := d.query(e.Expr, time.Unix(0, 0).Add(time.Duration(e.EvalTime)))
		errs = append(errs, err)
		if len(got) != len(e.Want) {
			errs = append(errs, fmt.Errorf("%s is %v, want %d samples", e.Expr, got, len(e.Want)))
		}
		for _, want := range e.Want {
			metric, err := promqlParser.ParseMetric(want.Labels)
			errs = append(errs, err)
			if !slices.ContainsFunc(got, func(s promql.Sample) bool {
				return labels.Equal(s.Metric, metric) && math.Abs(s.F-want.Value) < 1e-9
			}) {
				errs = append(errs, fmt.Errorf("%s is %v, want %s %v in it", e.Expr, got, want.Labels, want.Value))
			}
		}
	}
	return errs
}

// evaluate does what Prometheus does once in an interval: it records, and returns the alerts
// that fire. since has the time from which on each alert was to fire.
func (d database) evaluate(groups *rulefmt.RuleGroups, at time.Time, since map[string]time.Time) (map[string][]alert, error) {
	firing := map[string][]alert{}
	for _, group := range groups.Groups {
		if err := d.record(group, at); err != nil {
			return nil, err
		}
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			result, err := d.query(rule.Expr, at)
			if err != nil {
				return nil, fmt.Errorf("alert %s: %w", rule.Alert, err)
			}
			active := map[string]bool{}
			for _, sample := range result {
				key := rule.Alert + sample.Metric.String()
				active[key] = true
				if _, ok := since[key]; !ok {
					since[key] = at
				}
				if at.Sub(since[key]) >= time.Duration(rule.For) {
					a, err := newAlert(rule, sample, at)
					if err != nil {
						return nil, err
					}
					firing[rule.Alert] = append(firing[rule.Alert], a)
				}
			}
			maps.DeleteFunc(since, func(key string, _ time.Time) bool {
				return strings.HasPrefix(key, rule.Alert+"{") && !active[key]
			})
		}
	}
	return firing, nil
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

func newAlert(rule rulefmt.Rule, sample promql.Sample, at time.Time) (alert, error) {
	a := alert{Labels: sample.Metric.Map(), Annotations: map[string]string{}}
	delete(a.Labels, model.MetricNameLabel)
	data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
	var errs []error
	expand := func(text string) string {
		text = "{{$labels := .Labels}}{{$value := .Value}}" + text
		expanded, err := template.NewTemplateExpander(context.Background(), text, rule.Alert, data, model.Time(timestamp.FromTime(at)), nil, nil, nil).Expand()
		errs = append(errs, err)
		return expanded
	}
	for name, text := range rule.Labels {
		a.Labels[name] = expand(text)
	}
	for name, text := range rule.Annotations {
		a.Annotations[name] = expand(text)
	}
	return a, errors.Join(errs...)
}
