SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

.PHONY: help install test test-unit check verify generate build chart cluster kind demo bench sbom clean

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: node_modules/.installed ## Install the pinned npm packages (Node 24 is one of them)

node_modules/.installed: package.json package-lock.json
	npm ci --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@

test: install ## Run every test on a real API server, S3 and Git (builds them once per machine)
	node scripts/test.ts

test-unit: install ## Run the pure tests alone (seconds)
	vitest run --project unit

check: install ## Types, lint, layers, dead code, generated files (seconds)
	node scripts/check.ts

verify: install ## Fail when a generated file differs from what the source gives
	node scripts/generate.ts --check

generate: install ## Write crds/ and the generated parts of docs/
	node scripts/generate.ts

build: install ## Bundle the operator and skillctl into dist/
	node scripts/build.ts

chart: install ## Lint the Helm chart and package it into dist/
	node scripts/chart.ts

sbom: install ## List the npm packages inside the programs as CycloneDX, in dist/
	node scripts/sbom.ts

cluster: install ## Start the test cluster (NODE=1: with a node) and keep it until Ctrl-C
	node test/cluster/main.ts $(if $(NODE),--node)

kind: install ## The same on a kind cluster, where a Docker engine answers
	node test/cluster/kind.ts

demo: install ## Marketplace to validated, stored skills on a real API server (URL=<git url>, KEEP=1, CHART=1: the chart on a node)
	node scripts/demo.ts

bench: install ## Time the targets of the design on this machine; prints value, target, ok or MISS
	node test/bench/main.ts

clean: ## Remove what the targets above wrote into this folder
	rm -rf node_modules dist coverage
