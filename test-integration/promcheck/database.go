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

// scrapeInterval is the time between two moments.
const scrapeInterval = 30 * time.Second

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

// query evaluates an expression.
func (d database) query(expr string, at time.Time) (promql.Vector, error) {
	querier := &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		return &seriesSet{rest: d.selected(matchers...)}
	}}
	query, err := engine.NewInstantQuery(context.Background(), &storage.MockQueryable{MockQuerier: querier}, nil, expr, at)
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

// readScrapes returns all samples of a folder, and the last moment. As Prometheus does, it adds
// the job to the labels.
func readScrapes(dir string) (database, time.Time, error) {
	type scrape struct {
		file, job string
		at        time.Time
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, time.Time{}, err
	}
	var scrapes []scrape
	for _, file := range files {
		moment, job, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txt"), "-")
		n, err := strconv.Atoi(moment)
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("%s: want a name as 1-kube-scheduler.txt: %w", file, err)
		}
		scrapes = append(scrapes, scrape{file: file, job: job, at: time.Unix(0, 0).Add(time.Duration(n) * scrapeInterval)})
	}
	if len(scrapes) == 0 {
		return nil, time.Time{}, fmt.Errorf("no *.txt in %s", dir)
	}
	slices.SortFunc(scrapes, func(a, b scrape) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.job, b.job)) })
	d := database{}
	for _, s := range scrapes {
		if err := d.read(s.file, s.job, s.at); err != nil {
			return nil, time.Time{}, fmt.Errorf("%s: %w", s.file, err)
		}
	}
	return d, scrapes[len(scrapes)-1].at, nil
}

func (d database) read(file, job string, at time.Time) error {
	text, err := os.ReadFile(file)
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
		d.add(labels.NewBuilder(metric).Set("job", job).Labels(), at, value)
	}
}
