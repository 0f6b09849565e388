#!/usr/bin/env bash
# Builds packages of programs into bin, and says what it does: build.sh ./cmd/kaz
# Without cgo the compiled packages also serve the control plane's programs, which share many of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(bash tools/version.sh)
flags=(${version:+-ldflags "-X k8s.io/component-base/version.gitVersion=$version"})
total=$(CGO_ENABLED=0 go list -deps "$@" | wc -l)
echo "Building $* into bin (the first build downloads modules and compiles $total packages, which takes some minutes)"

# go build -v prints each package that it compiles. A line every 20 seconds shows that it goes on.
CGO_ENABLED=0 go build -v -o bin/ "${flags[@]}" "$@" 2>&1 | {
  count=0 said=0
  while read -r line; do
    if [[ $line == *[[:space:]:]* ]]; then
      echo "$line" # an error, or the download of a module
      continue
    fi
    count=$((count + 1))
    if ((SECONDS - said >= 20)); then
      said=$SECONDS
      echo "compiled $count of at most $total packages in $SECONDS s"
    fi
  done
}
