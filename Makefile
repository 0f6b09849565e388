# Begin with two commands: make up, make test.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: docs help up down build images release checksums test test-long fuzz e2e lint fmt generate bench tools clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: build-kaz ## start a local Azure and a Kubernetes cluster on it; ARGS="--nodes 5" are options of kaz local up
	@bash tools/node-programs.sh
	@echo "Starting a local Azure and a cluster (bin/kaz local up --example $(ARGS)); Ctrl-C stops both"
	@exec bin/kaz local up --example $(ARGS)

down: build-kaz ## stop a cluster that was started with make up ARGS=--detach
	@exec bin/kaz local down $(ARGS)

build: check-go ## build all programs into bin
	@bash tools/build.sh ./cmd/...

# kaz has all components in it, so a local cluster needs no other program of cmd.
.PHONY: build-kaz
build-kaz: check-go
	@bash tools/build.sh ./cmd/kaz

images: check-go ## build the programs' container images as OCI layouts into bin/images; VERSION=v1.36.0
	@echo "Building the images for amd64 and arm64 (the first build takes some minutes)"
	@go -C deploy/images run . -source "$(CURDIR)" -out "$(CURDIR)/bin/images" $(if $(VERSION),-version $(VERSION))

release: check-go ## make a release into dist: archives, packages, charts, images; VERSION=v0.1.0, KEY=cosign.key signs, PLATFORMS=linux/amd64
	@VERSION="$(VERSION)" KEY="$(KEY)" PLATFORMS="$(PLATFORMS)" bash tools/release.sh

docs: check-go ## serve docs as a site with search at http://localhost:1313; PORT=8000, or DIR=folder writes it there
	@PORT="$(PORT)" bash tools/docs.sh $(if $(DIR),"$(DIR)")

checksums: ## add the checksums of a version of Kubernetes that dl.k8s.io publishes to those in kaz; VERSION=v1.36.3
	@bash tools/checksums.sh $(VERSION)

test: check-go ## run the tests of every layer: unit, component, contract, chart, images, cluster
	@bash tools/test.sh

test-long: check-go ## run what test leaves out; PARTS="planner clusters" names parts, SCHEDULES=2000 FIRST=1 random schedules
	@PARTS="$(PARTS)" SCHEDULES=$(SCHEDULES) FIRST=$(FIRST) bash tools/test-long.sh

fuzz: check-go ## run fuzz targets of all that parses foreign bytes; MINUTES=30 each, JOBS=1 at a time, TARGETS='template' matches names
	@MINUTES="$(MINUTES)" JOBS="$(JOBS)" TARGETS="$(TARGETS)" bash tools/fuzz.sh

# The script reads FOCUS, SKIP, PROCS, OUT and KEEP from the environment.
e2e: check-go ## run Kubernetes' end-to-end tests on three real nodes; FOCUS='\[Conformance\]', SKIP, PROCS=4, OUT=bin/e2e/results, KEEP=1
	@bash tools/e2e.sh

lint: tools ## run the linter, with the layer rules of .golangci.yml
	@bash tools/lint.sh

fmt: tools ## format all Go code
	@bin/golangci-lint fmt

generate: check-go ## regenerate the generated parts of docs and code
	@go generate ./...

bench: tools ## run benchmarks; BENCH=regexp PKG=./internal/... COUNT=6; OLD=file compares with an earlier bin/bench.txt
	@go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -count $(or $(COUNT),1) $(or $(PKG),./...) | tee bin/bench.txt
	@$(if $(OLD),bin/benchstat $(OLD) bin/bench.txt)

# The tools do not need cgo, so they build the same with a C compiler and without.
tools: check-go ## build the linters and benchstat, as pinned in tools/go.mod, into bin
	@echo "Building the tools of tools/go.mod into bin (the first build takes a minute or more)"
	@CGO_ENABLED=0 go -C tools build -o ../bin/ tool

clean: ## remove all built files
	@rm -rf bin

.PHONY: check-go
check-go:
	@bash tools/check-go.sh
