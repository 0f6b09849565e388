#!/usr/bin/env bash
# Runs the tests that take too long for every change. PARTS names the parts to run, all of them by default:
#   planner    the properties of the load balancer planner: CHECKS says with how many cases each, 500 by default
#   services   the Service controller: every write of twenty kinds of Services fails in every way; speed; kaz cluster: it dies at every write
#   conformance  Gateway API's own suite against application gateways
#   clusters   the clusters that make test leaves out: nodes that fail, both IP families, the chart, hundreds of nodes; two that share names
#   booted     clusters on machines that boot, from their definition to their end: upgraded, repaired, restored
#   cold       the first make up in an empty home directory, and the next one; not a part by default: it compiles everything anew
#   minors     clusters of the other releases of Kubernetes; not a part by default: it builds each of them
#   coldstart  the cold start of a controller with 5,000 nodes
#   disks      bursts of attachments and detachments in real time, with Azure's latency
#   rollout    10 pods behind an application gateway are replaced at 200 requests a second, with the readiness gate, in two minutes
#   release    a release of the last commit, twice the same bytes, and the guide to it on a machine without Go; not a part by default: it
#              builds every program anew
#   blobs      the tests of the official SDK for blobs; not a part by default: they take seven minutes
#   queues     the tests of the official SDK for queues; not a part by default
#   tables     the tests of the official SDK for tables; not a part by default: they take five minutes
#   az         commands of Debian's az, and its SDK for Python, against a local Azure; CHAINS names some of the chains
#   pace       what the web page of 2,000 resources costs, and its first paint; not a part by default: other work on the machine disturbs it
#   window     the web page of a cluster's Azure in Chromium; as root with real nodes
#   site       the site of docs: it is built without a warning, and looked at in Chromium; not a part by default: it builds hugo
#   schedules  random schedules of the Service controller, and an eighth of them of shared names: SCHEDULES says how many, FIRST is the
#              seed of the first
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/steps.sh
source tools/gotest.sh

usual=(clusters az planner services schedules conformance booted coldstart disks rollout window)
all=("${usual[@]}" cold minors blobs queues tables pace release site)
read -ra parts <<<"${PARTS:-${usual[*]}}"
for part in "${parts[@]}"; do
  if [[ " ${all[*]} " != *" $part "* ]]; then
    echo "PARTS=$part: no such part; the parts are ${all[*]}" >&2
    exit 2
  fi
done
schedules=${SCHEDULES:-100000}
first=${FIRST:-1}
checks=${CHECKS:-500}
for given in "SCHEDULES=$schedules" "FIRST=$first" "CHECKS=$checks"; do
  if [[ ! ${given#*=} =~ ^(0|[1-9][0-9]{0,8})$ ]]; then
    echo "$given: want a whole number below 1000000000" >&2
    exit 2
  fi
done

planner() {
  step "planner: properties with $checks cases each, every state that another controller leaves" \
    tests planner -count=1 ./internal/plan/loadbalancer -rapid.checks="$checks"
}

# What make test runs of these without shortening it does not run again.
fault_matrices=(./internal/cloudprovider/service ./internal/cluster/engine ./internal/cluster/deploy ./internal/cluster/boot ./internal/cluster/etcd)

services() {
  step "services and clusters: each write fails in each way; boot script; etcd; speed" \
    tests services -count=1 -timeout 60m -run "$(shortened "${fault_matrices[@]}")" "${fault_matrices[@]}"
}

# Clusters wait for programs most of the time, so they run beside the parts that compute.
clusters() {
  beside "clusters: those that make test leaves out" long_clusters
  beside "names: two clusters that share a zone" clusters_with_names
}

# The suite waits for its routes with timeouts of its own, so nothing computes beside it.
conformance() {
  step "conformance: Gateway API's own suite" tests_in test/cluster conformance -count=1 -timeout 20m -run "$conformance" .
}

az() { step "az: commands of Debian's az and its SDK for Python" bash tools/az.sh; }

booted() {
  step "booted: clusters of machines that boot, from their definition to their end" \
    tests_in test/cluster booted -count=1 -timeout 100m -run "$booted" .
}

coldstart() {
  step "cold start of a controller with 5,000 nodes" \
    tests_in test/cluster coldstart -count=1 -timeout 45m -run TestColdStart . -fleet 5000
}

minors() {
  step "minors: clusters of the other releases of Kubernetes" \
    tests_in test/cluster minors -count=1 -v -timeout 120m -run "$minors" .
}

blobs() { step "blobs: the tests of the official SDK" tests_in test/storage blobs -count=1 -v -run TestBlobs .; }

queues() { step "queues: the tests of the official SDK" tests_in test/storage queues -count=1 -v -run TestQueues .; }

tables() { step "tables: the tests of the official SDK" tests_in test/storage tables -count=1 -v -run TestTables .; }

cold() { step "cold: the first make up, and the next one" bash tools/cold.sh; }

release() { step "release: made twice, verified and used without Go" bash tools/release-check.sh; }

disks() {
  step "disks: bursts in real time" tests disks -count=1 -v -run TestRealTime ./internal/csi/disk -latency 1
}

rollout() {
  step "rollout: 10 pods behind an application gateway" tests rollout -count=1 -v -run TestRollout/with_the_readiness_gate ./internal/gateway \
    -rollout-pods 10 -rollout-latency 0.1
}

window() {
  local nodes=()
  if ((EUID == 0)); then nodes=(-real); fi
  step "window: the web page of a cluster's Azure in Chromium" tests_in test/web window -count=1 -run TestOnCluster . "${nodes[@]}"
}

pace() { step "pace: the web page of 2,000 resources" tests_in test/web pace -count=1 -v -run TestPace .; }

site() {
  step "site: docs as a site" bash tools/docs.sh bin/site
  step "site: its pages in Chromium" tests_in test/web site -count=1 -run TestSite . -site "$PWD/bin/site"
}

# Schedules are played in parts, so that a failure is seen early. With GOGC=400 they take a third less time.
schedules() {
  local part=10000 from count
  export GOGC=400
  for ((from = first; from < first + schedules; from += part)); do
    count=$((first + schedules - from < part ? first + schedules - from : part))
    step "schedules $from to $((from + count - 1))" tests "schedules-$from" -count=1 -timeout 3h -run TestSchedules \
      ./internal/cloudprovider/service -seed "$from" -schedules "$count"
    step "schedules $from to $((from + count / 8)) of shared names" tests "names-$from" -count=1 -timeout 3h -run 'TestSchedules|TestLargeZone|TestSharedRest' \
      ./internal/dns -seed "$from" -schedules "$((count / 8 + 1))"
  done
}

step "programs that run and summarize tests" build_gotestsum
for part in "${parts[@]}"; do
  # These measure times, so they run alone.
  if [[ $part =~ ^(conformance|coldstart|booted|disks|cold|release|window)$ ]]; then join; fi
  "$part"
done
join
slowest
steps_done "Long tests"
