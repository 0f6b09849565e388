#!/usr/bin/env bash
# Runs every test of this repository, part by part, and says how long each part took.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/steps.sh

# The race detector needs cgo, and cgo a C compiler that can link.
compiles_c() {
  local dir works=1
  dir=$(mktemp -d)
  printf '#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n' >"$dir/probe.c"
  $(go env CC) -o "$dir/probe" "$dir/probe.c" 2>/dev/null || works=0
  rm -r "$dir"
  ((works))
}

race=()
if compiles_c; then
  export CGO_ENABLED=1
  race=(-race)
  echo "Unit and component tests run with the race detector."
else
  export CGO_ENABLED=0
  echo "No working C compiler ($(go env CC)): unit and component tests run WITHOUT the race detector."
fi

# Short leaves out what needs the programs of the control plane; that has steps of its own below.
step "unit, golden, property, component and replay tests" go test "${race[@]}" -short -timeout 30m ./...
step "contract: the official Azure SDKs against the local Azure" go -C test/contract test -timeout 20m ./...
step "chart: rendered, linted and refused as Helm does it" go -C test/chart test -timeout 20m ./...
# Not cached: it compiles programs, and go cannot see that those changed.
step "images: as OCI layouts, the same twice" go -C deploy/images test -count=1 -timeout 20m ./...
echo
echo "The Kubernetes control plane is built the first time, which takes some minutes."
step "build: the programs" make --no-print-directory build
# Not cached: what these run are programs, and go cannot see that those changed.
step "control plane: it starts, keeps its state and simulates nodes" go test -count=1 -v -run TestCluster -timeout 45m ./internal/local/controlplane
step "cluster: a Service gets its external IP" go -C test/cluster test -count=1 -v -timeout 45m ./...
steps_done "Tests"
