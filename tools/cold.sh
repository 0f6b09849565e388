#!/usr/bin/env bash
# Measures the first start of kaz in an empty home directory: no compiled packages, no modules, no state. Then it measures the next
# start. Both run make up; NODES is the kind of its nodes, real or hollow. Each start ends when the cluster is usable, with real
# nodes when the example answers. The processor must be idle otherwise, else the times say nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nodes=${NODES:-$( ((EUID == 0)) && echo real || echo hollow)}
home=$(mktemp -d)
log=$home/up.log
pid=

# The modules in the new home directory are read-only.
cleanup() {
  if [[ -n $pid ]] && kill -0 "$pid" 2>/dev/null; then
    kill -INT "$pid"
    wait "$pid" || true
  fi
  chmod -R u+w "$home"
  rm -rf "$home"
}
trap cleanup EXIT

# start WHAT LIMIT runs make up until the cluster is usable, prints the seconds, and fails if they are more than the limit.
start() {
  local what=$1 limit=$2 begin=$SECONDS
  HOME=$home GOPATH=$home/go GOCACHE=$home/build GOMODCACHE=$home/go/pkg/mod XDG_CACHE_HOME=$home/cache \
    bash -c 'make --no-print-directory build-kaz && exec bin/kaz local up --example --nodes-kind "$0"' "$nodes" >"$log" 2>&1 &
  pid=$!
  until grep -q '^The cluster is up' "$log"; do
    if ! kill -0 "$pid" 2>/dev/null; then
      cat "$log"
      echo "make up ended before the cluster was usable" >&2
      return 1
    fi
    sleep 1
  done
  local took=$((SECONDS - begin))
  echo "$what with $nodes nodes: $took s (limit $limit s)"
  grep -E '^(Built|Building|built|compiling|control plane programs|  )' "$log" | tail -n 20
  kill -INT "$pid"
  wait "$pid" || true
  pid=
  ((took <= limit))
}

rm -rf bin/kaz
failed=0
start "first start" "${FIRST_LIMIT:-1500}" || failed=1
start "next start" "${NEXT_LIMIT:-60}" || failed=1
exit "$failed"
