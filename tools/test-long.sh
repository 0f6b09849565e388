#!/usr/bin/env bash
# Runs what takes too long for every change: the properties of the load balancer planner,
# each write of twenty kinds of Services goes wrong in each way, all that is promised of
# speed, and random schedules.
# SCHEDULES is how many of these are played, FIRST the seed of the first one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/steps.sh

schedules=${SCHEDULES:-100000}
first=${FIRST:-1}
for given in "SCHEDULES=$schedules" "FIRST=$first"; do
  if [[ ! ${given#*=} =~ ^(0|[1-9][0-9]{0,8})$ ]]; then
    echo "$given: want a whole number below 1000000000" >&2
    exit 2
  fi
done

# Played in parts, so that what failed and how far it got is seen on the way. A schedule keeps little and throws away
# much: with a collector that waits longer they take a third less time.
play() {
  GOGC=400 go test -count=1 -timeout 3h -run TestSchedules ./internal/cloudprovider/service -seed "$1" -schedules "$2"
}

# 57 s of processor time; 79 s while others built on the same two cores.
step "load balancer planner: what holds for random Services, every scene of another's work" \
  go test -count=1 -timeout 20m ./internal/plan/loadbalancer -rapid.checks=500
step "Services: each write goes wrong in each way; speed" go test -count=1 -timeout 60m ./internal/cloudprovider/service
step "cluster: the cold start of a controller with 5,000 nodes" go -C test/cluster test -count=1 -v -timeout 45m -run TestColdStart . -fleet 5000
part=10000
for ((from = first; from < first + schedules; from += part)); do
  left=$((first + schedules - from))
  count=$((left < part ? left : part))
  step "Services: random schedules $from to $((from + count - 1))" play "$from" "$count"
done
steps_done "Long tests"
