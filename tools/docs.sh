#!/usr/bin/env bash
# Serves docs as a site, or writes it: docs.sh [FOLDER]. Without a folder it serves until Ctrl-C; PORT is 1313 by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ! -x bin/hugo || tools/site/go.mod -nt bin/hugo ]]; then
  echo "Building hugo, as pinned in tools/site/go.mod, into bin (the first build takes some minutes)"
  CGO_ENABLED=0 go -C tools/site build -o ../../bin/ tool
  touch bin/hugo # which may be as old as the cache
fi
cache=$PWD/bin/hugo-cache
if (($#)); then
  said=$(bin/hugo build --source tools/site --destination "$(realpath -m "$1")" --cacheDir "$cache" --noBuildLock 2>&1) || {
    printf '%s\n' "$said" >&2
    exit 1
  }
  printf '%s\n' "$said"
  if grep -q ^WARN <<<"$said"; then # such as a page without a layout
    exit 1
  fi
  exit
fi
exec bin/hugo server --source tools/site --cacheDir "$cache" --noBuildLock --renderToMemory --port "${PORT:-1313}"
