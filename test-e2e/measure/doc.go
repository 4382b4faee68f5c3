// SPDX-License-Identifier: Apache-2.0

// Package measure has what the measurements and the demonstration of the whole chain
// share: a cluster with the reference driver, schedulers to replace its own with, pods
// with volumes, and a record of what happens to them.
package measure
