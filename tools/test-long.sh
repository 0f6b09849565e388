#!/usr/bin/env bash
# Runs what takes too long for every change: each write of twenty kinds of Services goes
# wrong in each way, random schedules, and all that is promised of speed.
# SCHEDULES is how many random schedules are played.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/steps.sh

step "Services: each write goes wrong in each way; speed" go test -count=1 -timeout 60m ./internal/cloudprovider/service
step "cluster: the cold start of a controller with 5,000 nodes" go -C test/cluster test -count=1 -v -timeout 45m -run TestColdStart . -fleet 5000
step "Services: random schedules" go test -count=1 -timeout 3h -run TestSchedules ./internal/cloudprovider/service -schedules "${SCHEDULES:-40000}"
steps_done "Long tests"
