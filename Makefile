# Each verb is one of the Go program in scripts/, which reads the variables of make's command line itself.
VERBS := up down demo release clean apply export rebase codegen lint test verify e2e bench
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help $(VERBS)

# scripts/ runs before there is a tree, so outside the workspace of go.work.
help $(VERBS):
	@test "$$(uname)" = Linux || { echo "error: this is $$(uname), and the verbs run on Linux" >&2; exit 1; }
	@GOWORK=off CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false -gcflags=all=-dwarf=false" go -C scripts run . $@
