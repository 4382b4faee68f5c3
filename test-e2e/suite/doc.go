// SPDX-License-Identifier: Apache-2.0

// Package suite is the end-to-end test program: our specs and upstream's storage specs
// on upstream's framework, with upstream's flags. There is nothing but the test: `make
// e2e` builds and runs it. reference.yaml describes the reference driver to upstream's
// suites for drivers, and skipped.yaml lists what is not run, and why.
package suite
