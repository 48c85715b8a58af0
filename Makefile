# Run make alone to see what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
export TIMEFORMAT = make: $@: %R s

# Packages with goroutines whose tests bear the race detector's slowness.
RACE ?= ./fabric/... ./internal/... ./lab/impair/... ./lab/load/... ./lab/workload/... ./proxy/...
BENCH ?= ./...

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LINT := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

.PHONY: help run build test check unit fuzz soak show conformance bench gen

help: ## print this
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

run: ## install what the lab starts, build, run experiments/quickstart.yaml
	@./setup run
	@$(MAKE) build
	bin/skerry run experiments/quickstart.yaml

build: ## build the programs into bin/
	CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/... && overlay/dataplane/build.sh

test: ## install what the tests call, then build, check, unit, fuzz
	@./setup test
	-@test/guest/fetch.sh
	@time $(MAKE) build check unit fuzz

check: ## linters, formatters, spelling, go.mod and the rules of test/tidy
	@time { $(LINT) run ./... && go vet ./...; }
	for m in . tools; do (cd $$m && go mod tidy -diff); done
	shellcheck $$(test/scripts.sh)
	git ls-files -z -co --exclude-standard | xargs -0 codespell
	go test -count=1 ./test/tidy

unit: build ## every test, one package at a time, again where the hypervisor disturbed it, then those without timing under the race detector
	overlay/dataplane/test/run.sh && bin/skerry kube build
	@time go run ./test/unit
	@time go run ./test/unit -race -p=2 $(RACE)

fuzz: ## every fuzz target for FUZZTIME; by default 5s, 10s in fabric and proxy
	@time { test/fuzz.sh && overlay/dataplane/test/fuzz.sh; }

soak: ## every fuzz target for 10 minutes, those of fabric and proxy for an hour; ONLY='native FuzzServe' those alone
	FUZZTIME=10m FUZZTIME_OTHERS=1h $(MAKE) fuzz

show: build ## show that an area does what it says: make show AREA=truth
	go run ./test/show $(AREA)

conformance: build ## Kubernetes' own specs of the network on a lab's cluster; FULL=1: of all areas
	@./setup kube && go run ./test/conformance $(if $(FULL),-full)

bench: ## Go benchmarks of BENCH, every package by default
	go test -run '^$$' -bench . -benchmem $(BENCH)

gen: ## write the JSON Schema and the man pages again
	go run ./cmd/skerry gen docs
