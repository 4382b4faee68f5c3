// Package suites runs upstream's own long integration suites with the feature
// gate off and on, and reports where they differ.
package suites
