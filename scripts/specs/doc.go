// Package specs is about the specs of the end-to-end test program: which of them run,
// with which images, and what their reports say.
package specs
