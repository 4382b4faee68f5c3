// Package prove checks that each patch of the series is needed: the test that its
// Proven-By trailer names passes with the patch, and does not without it.
package prove
