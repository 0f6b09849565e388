#!/usr/bin/env bash
# Runs the tests of every layer, part by part, and prints the time of each part and the ten slowest tests.
# What it leaves out (whole fault matrices, speed, most clusters with real nodes) is in tools/test-long.sh. With LONG_CLUSTERS=1 it runs the
# part "clusters" of that, too: beside the tests that compute they take less time than after them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/steps.sh
source tools/gotest.sh

if compiles_c; then
  echo "Tests of packages with goroutines run with the race detector."
else
  echo "No working C compiler ($(go env CC)): all tests run WITHOUT the race detector."
fi

# Clusters wait for programs most of the time, and the tests of csi for a guest, so they run beside the tests that compute. They run one
# after the other: clusters use fixed networks, and csi compares the mounts and loop devices of the machine.
clusters_step() (
  SECONDS=0 step_report=() steps_failed=0
  step "build: the programs" make --no-print-directory build
  # Not cached: these tests run programs, and go cannot see that the programs changed.
  step "control plane: it starts, keeps its state and simulates nodes" \
    tests controlplane -count=1 -run TestCluster -timeout 45m ./internal/localcluster/controlplane
  step "clusters: Services with simulated and real nodes" \
    tests_in test/cluster cluster -count=1 -timeout 45m -run "$quick_clusters" ./...
  if [[ ${LONG_CLUSTERS:-} ]]; then
    beside "names: two clusters that share a zone" clusters_with_names
    step "clusters: all others" long_clusters
    join
  fi
  step "csi: csi-sanity with loop devices and file systems" tests_in test/csi csi -count=1 ./...
  steps_done "Clusters"
)

# Without cgo the kubelet's packages are those that were compiled for the control plane.
kubelet_step() (
  export CGO_ENABLED=0
  tests_in test/e2e kubelet ./kubelet ./submission
)

step "programs that run and summarize tests" build_gotestsum
echo "The Kubernetes control plane is built the first time, which takes some minutes."
beside "clusters and csi" clusters_step
step "planners and values: golden files, properties, fuzz seeds" tests pure -short $(pure_packages)
step "kaz cluster and Services: one goroutine at a time" tests sequential -short $(mostly_one_packages)
step "components: the local Azure, controllers, clients" tests component "${race[@]}" -short $(component_packages)
step "kaz cluster and Services: several goroutines" tests concurrent "${race[@]}" -short -run "$concurrent" \
  ./internal/cloudprovider/service ./internal/cluster/engine ./internal/cluster/deploy
step "contract: the official Azure SDKs against the local Azure" tests_in test/contract contract ./...
step "storage: the SDKs of blobs, queues and tables, as clients of an emulator" tests_in test/storage storage -short ./...
step "externaldns: ExternalDNS itself against the webhook" tests_in test/externaldns externaldns -short ./...
step "web: the page of the local Azure in Chromium" tests_in test/web web -count=1 -short ./...
step "chart: rendered, linted and refused as Helm does it" tests_in test/chart chart ./...
step "kubelet: it asks the shipped credential provider for images of Azure" kubelet_step
step "images: as OCI layouts, the same twice" tests_in deploy/images images -count=1 ./...
step "release: archives, packages, charts, changelog" tests_in tools/release release ./...
join
slowest
steps_done "Tests"
