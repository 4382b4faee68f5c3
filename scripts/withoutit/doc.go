// Package withoutit checks that the black-box tests fail without the change that
// they test: the expectations are a file, the results come from runs with the
// feature gate off and on the stock server.
package withoutit
