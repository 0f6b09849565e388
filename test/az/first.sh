#!/usr/bin/env bash
# Runs the commands of "First resources" in docs/guides/local-azure.md, as they are printed, each block in a shell of its own. KAZ is the
# folder with kaz.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

home=$(mktemp -d)
GOMODCACHE=$(go env GOMODCACHE) GOCACHE=$(go env GOCACHE)
export HOME=$home XDG_CACHE_HOME=$home/.cache GOMODCACHE GOCACHE CGO_ENABLED=0 PATH=$PWD/test/az/bin:$KAZ:/usr/bin:$PATH
trap 'kaz local azure delete --yes >/dev/null; rm -r "$home"' EXIT

number=0 block= in=
while IFS= read -r line; do
  case $line in
    '## '*) in=${line#'## '} ;;
    '```sh') block=$'\n' ;;
    '```')
      if [[ $in == 'First resources' && -n $block ]]; then
        number=$((number + 1))
        began=$SECONDS
        bash -euc "$block" >"$home/log" 2>&1 || { cat "$home/log" >&2; echo "block $number of the guide failed:$block" >&2; exit 1; }
        echo "first resources, block $number: $((SECONDS - began)) s"
      fi
      block=
      ;;
    *) [[ -z $block ]] || block+=$line$'\n' ;;
  esac
done <docs/guides/local-azure.md

kaz local azure list >"$home/list"
for group in first-az first-python first-go; do
  for made in virtualNetworks:net virtualMachines:vm "storageAccounts:kaz${group/-/}"; do
    grep -qE "${made%:*} +${made#*:} +$group " "$home/list" || { echo "$group has no $made:" >&2; cat "$home/list" >&2; exit 1; }
  done
done
((number == 3)) || { echo "the guide has $number blocks, not 3" >&2; exit 1; }
