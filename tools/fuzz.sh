#!/usr/bin/env bash
# Runs fuzz targets, each for MINUTES (30 by default), JOBS of them at a time (1 by default). TARGETS is a regular expression for
# PACKAGE.TARGET; by default it names the doors: all that parse bytes of somebody else, such as requests, templates and Secrets.
# An input that fails is kept in testdata/fuzz of its package, and go test runs it from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/steps.sh

minutes=${MINUTES:-30}
jobs=${JOBS:-1}
for given in "MINUTES=$minutes" "JOBS=$jobs"; do
  if [[ ! ${given#*=} =~ ^[1-9][0-9]{0,3}$ ]]; then
    echo "$given: want a whole number from 1 to 9999" >&2
    exit 2
  fi
done

doors='^internal/(localazure/(core|core/policy|server|behaviour/network|behaviour/resources|plane/.*)|template|healthproxy|pullcredential'
doors+='|csi/file/node|azure/secret|cluster/pki|cluster/definition|cluster/apimodel|cluster/helmchart)\.'
targets=${TARGETS:-$doors}

# all_targets prints PACKAGE.TARGET for each target of the repository.
all_targets() {
  git grep -oE '^func Fuzz[A-Za-z0-9]+' -- '*_test.go' | sed -E 's#/[^/]*_test\.go:func #.#' | sort -u
}

mapfile -t chosen < <(all_targets | grep -E "$targets" || true)
if ((${#chosen[@]} == 0)); then
  echo "TARGETS=$targets: no such target; there are:" >&2
  all_targets >&2
  exit 2
fi
echo "${#chosen[@]} targets, $minutes minutes each, $jobs at a time"

fuzz() {
  CGO_ENABLED=0 go test -vet=off -run '^$' -fuzz "^${1##*.}\$" -fuzztime "${minutes}m" -parallel "$(((($(nproc) + jobs - 1)) / jobs))" "./${1%.*}"
}

running=0
for target in "${chosen[@]}"; do
  if ((running >= jobs)); then
    join
    running=0
  fi
  beside "$target" fuzz "$target"
  running=$((running + 1))
done
join
steps_done "Fuzzing"
