# Entry points. Each verb is one of the Go program in scripts/; see make help.
.DEFAULT_GOAL := help
.PHONY: help up down demo release clean apply export codegen rebase lint test e2e verify nightly bench

# Only make's command line counts: an exported FORCE=1 must not change what a verb does.
VARIABLES := ALL BASE CLUSTER_MODE DRIVER FOCUS FORCE FORECAST FUZZ_TIME KEEP KUBERNETES_SRC KUBE_PROXY_BASE \
	NODES ONLY PATCH PODS PROCS PROJECT REPORT_ONLY RUNS SEED SIGN_KEY SUITE TARGET WITH
$(foreach v,$(VARIABLES),$(if $(filter environment,$(origin $v)),$(eval undefine $v)))

# A path from here: the program runs in scripts/. Only its beginning is looked at, because it may have blanks.
path = $(if $(filter /%,$(firstword $(1))),,$(CURDIR)/)$(1)

# scripts/ runs before there is a tree, so outside the workspace of go.work.
CAPACITYV2 := GOWORK=off CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false -gcflags=all=-dwarf=false" go -C scripts run . \
	$(if $(KUBERNETES_SRC),--kubernetes-src='$(call path,$(KUBERNETES_SRC))')
CLUSTER = $(if $(NODES),--nodes='$(NODES)') $(if $(CLUSTER_MODE),--cluster-mode='$(CLUSTER_MODE)')

help: ## List the verbs
	@awk -F ':.*## ' '/^##@ / {sub("##@ ", ""); print "\n" $$0 ":"} /^[a-z0-9-]+:.*## / && $$1 != "help" {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Variables, each a flag of the verbs before the colon (FUZZ_TIME is --fuzz-time):"
	@echo "  KUBERNETES_SRC=DIR  all: the base comes from a git checkout at the tag, not from Go modules"
	@echo "  NODES=N             up, e2e: number of nodes, 1 to 9"
	@echo "  DRIVER=reference    up: install the reference CSI driver with the patched external-provisioner"
	@echo "  CLUSTER_MODE=MODE   up, e2e: full or control-plane; full where a kubelet can run"
	@echo "  FOCUS=REGEXP        e2e: only specs with such names, slow ones too"
	@echo "  TARGET=NAME         e2e: gate-on, gate-off, or stock (components without the series)"
	@echo "  ALL=1               e2e: slow specs too, with a table of results"
	@echo "  PROCS=N             e2e: how many specs run side by side"
	@echo "  KEEP=1              e2e: leave the cluster to the next run, until make down"
	@echo "  PODS=N              nightly: how many pods for each policy in the stress test"
	@echo "  SEED=N              nightly: the order of faults of an earlier run of stress or faults"
	@echo "  SUITE=NAME          bench, nightly: the suite chain or provisioner; in nightly, only folders of suites that match"
	@echo "  ONLY=REGEXP         bench, nightly: only these parts"
	@echo "  RUNS=N              bench: how often the suite chain measures each part"
	@echo "  FUZZ_TIME=10m       nightly: how long each fuzz test runs"
	@echo "  PATCH=REGEXP        verify: only whether these patches are needed"
	@echo "  REPORT_ONLY=1       bench: write the report again from the last results"
	@echo "  PROJECT=NAME        rebase, codegen: a folder of patches/"
	@echo "  BASE=v…             rebase: the base to move to, the argument of the verb"
	@echo "  FORECAST=1          rebase: only tell what would happen to each patch"
	@echo "  WITH=FILE           rebase: in a forecast, add the patch file of an upstream pull request to the base"
	@echo "  SIGN_KEY=FILE       release: sign with this secret key of minisign's"
	@echo "  KUBE_PROXY_BASE=FILE   release: image with iptables and nft, for an image of kube-proxy"
	@echo "  FORCE=1             clean: even over work of yours"
	@echo
	@echo "GOWORK=off go -C scripts run . VERB --help says more; that of up names the environment variables of a cluster."

##@ Use
up: ## The main job: apply, build the custom release, bring up a local cluster with the features on
	@$(CAPACITYV2) up $(CLUSTER) $(if $(DRIVER),--driver='$(DRIVER)')

down: ## End the local cluster and remove what it made, except its logs
	@$(CAPACITYV2) down

demo: ## Show the stories of the KEP on a local cluster, before and after, and draw docs/images
	@$(CAPACITYV2) demo

release: ## Pack dist/, reproducibly, and sign it
	@$(CAPACITYV2) release $(if $(SIGN_KEY),--sign-key='$(call path,$(SIGN_KEY))') \
		$(if $(KUBE_PROXY_BASE),--kube-proxy-base='$(call path,$(KUBE_PROXY_BASE))')

clean: ## Remove what the tooling made (FORCE=1: even commits that are not exported, stashes and branches)
	@$(CAPACITYV2) clean $(if $(FORCE),--force)

##@ Patch
apply: ## Assemble the pinned bases, verified, and put each series on its base, one commit per patch
	@$(CAPACITYV2) apply

export: ## Write the commits of the trees back as patch files
	@$(CAPACITYV2) export

codegen: ## Regenerate with upstream's own generators, and show what changed
	@$(CAPACITYV2) codegen $(if $(PROJECT),--project=$(PROJECT))

rebase: ## Move the series to another upstream version: make rebase BASE=v1.38.0
	@$(if $(BASE)$(FORECAST),,$(error BASE is not set. Expected: a tag of the project. Run: make rebase BASE=v1.37.2))
	@$(CAPACITYV2) rebase $(BASE) $(if $(PROJECT),--project=$(PROJECT)) $(if $(FORECAST),--forecast) $(if $(WITH),--with='$(call path,$(WITH))')

##@ Check
lint: ## Check the series without a source tree; shellcheck, gofmt, vet, staticcheck
	@$(CAPACITYV2) lint

test: ## The tests: lint, unit tests of every touched package, integration tests
	@$(CAPACITYV2) test

e2e: ## Bring up a cluster, run the end-to-end tests on it, ours and upstream's, end it
	@$(CAPACITYV2) e2e $(CLUSTER) $(if $(TARGET),--target='$(TARGET)') $(if $(FOCUS),--focus='$(value FOCUS)') \
		$(if $(ALL),--all) $(if $(PROCS),--procs=$(PROCS)) $(if $(KEEP),--keep)

verify: ## Round trip, tree lock, gates, each prefix, generated code; PATCH=REGEXP: are these patches needed?
	@$(CAPACITYV2) verify $(if $(PATCH),--patch='$(value PATCH)')

nightly: ## What takes too long for every change: prove, upstream-suites, fails-without, skew, stress, faults, e2e, smoke, fuzz
	@$(CAPACITYV2) nightly $(if $(ONLY),--only='$(value ONLY)') $(if $(SUITE),--suite='$(value SUITE)') $(if $(PODS),--pods=$(PODS)) \
		$(if $(SEED),--seed=$(SEED)) $(if $(FUZZ_TIME),--fuzz-time=$(FUZZ_TIME))

##@ Measure
bench: ## Run the benchmarks, with upstream's code in the same run, and write docs/benchmarks
	@$(CAPACITYV2) bench $(if $(SUITE),--suite='$(SUITE)') $(if $(ONLY),--only='$(value ONLY)') $(if $(RUNS),--runs=$(RUNS)) \
		$(if $(REPORT_ONLY),--report-only)
