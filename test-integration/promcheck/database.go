package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

var (
	promqlParser = parser.NewParser(parser.Options{})
	engine       = promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promqlParser,
	})
)

// database is a set of series in memory, by their labels.
type database map[string]*promql.Series

func (d database) add(metric labels.Labels, at time.Time, value float64) {
	key := metric.String()
	if d[key] == nil {
		d[key] = &promql.Series{Metric: metric}
	}
	d[key].Floats = append(d[key].Floats, promql.FPoint{T: at.UnixMilli(), F: value})
}

// selected returns the series that match.
func (d database) selected(matchers ...*labels.Matcher) []*promql.Series {
	var found []*promql.Series
	for _, s := range d {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	return found
}

// query evaluates an expression at a moment.
func (d database) query(expr string, at time.Time) (promql.Vector, error) {
	query, err := engine.NewInstantQuery(context.Background(), d.queryable(), nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		return nil, result.Err
	}
	vector, err := result.Vector()
	return slices.Clone(vector), err
}

// step is the time between two points of a range.
const step = 2 * time.Second

// queryRange evaluates an expression at each step. What a component said counts for a few steps: it may
// have been killed.
func (d database) queryRange(expr string, from, to time.Time) (promql.Matrix, error) {
	options := promql.NewPrometheusQueryOpts(false, 7*time.Second)
	query, err := engine.NewRangeQuery(context.Background(), d.queryable(), options, expr, from, to, step)
	if err != nil {
		return nil, err
	}
	result := query.Exec(context.Background())
	if result.Err != nil {
		return nil, result.Err
	}
	return result.Matrix()
}

func (d database) queryable() storage.Queryable {
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return &seriesSet{rest: d.selected(matchers...)}
		},
	}}
}

// seriesSet goes through series.
type seriesSet struct {
	rest []*promql.Series
	now  *promql.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.now, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return promql.NewStorageSeries(*s.now) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// scrape is a file of metrics.
type scrape struct {
	file, job, instance string
	at                  time.Time
}

// readScrapes returns all samples of a folder, and the first and the last moment. As Prometheus does,
// it adds job and instance to the labels.
func readScrapes(dir string) (d database, first, last time.Time, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, first, last, err
	}
	var scrapes []scrape
	for _, file := range files {
		seconds, of, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txt"), "-")
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			return nil, first, last, fmt.Errorf("%s: want a name as 30-kube-scheduler.txt: %w", file, err)
		}
		s := scrape{file: file, at: time.Unix(n, 0)}
		s.job, s.instance, _ = strings.Cut(of, "@")
		scrapes = append(scrapes, s)
	}
	if len(scrapes) == 0 {
		return nil, first, last, fmt.Errorf("no *.txt in %s", dir)
	}
	slices.SortFunc(scrapes, func(a, b scrape) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.file, b.file)) })
	d = database{}
	for _, s := range scrapes {
		if err := d.read(s); err != nil {
			return nil, first, last, fmt.Errorf("%s: %w", s.file, err)
		}
	}
	return d, scrapes[0].at, scrapes[len(scrapes)-1].at, nil
}

func (d database) read(s scrape) error {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return err
	}
	p := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var metric labels.Labels
		p.Labels(&metric)
		_, _, value := p.Series()
		d.add(labels.NewBuilder(metric).Set("job", s.job).Set("instance", s.instance).Labels(), s.at, value)
	}
}
