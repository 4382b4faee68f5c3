// Package verify checks that the series builds and passes its tests after each
// patch, and remembers what it has checked.
package verify
