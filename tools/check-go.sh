#!/usr/bin/env bash
# Says in plain words when the Go tool is absent or too old for go.mod, before a build says it in other words.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

need=$(sed -n 's/^go //p' go.mod)
if ! command -v go >/dev/null; then
  echo "kaz needs Go $need or newer, and there is no go command in PATH: install it from https://go.dev/dl" >&2
  exit 1
fi
# Asked outside the module, where go does not look for another toolchain.
have=$(cd / && GOTOOLCHAIN=local go env GOVERSION | sed 's/.*go\([0-9][0-9a-z.]*\).*/\1/')
policy=$(cd / && go env GOTOOLCHAIN)
if [[ $(printf '%s\n' "$need" "$have" | sort -V | head -n 1) == "$need" ]]; then
  exit 0
fi
case $policy in
  local | path)
    echo "kaz needs Go $need or newer; this is Go $have, and GOTOOLCHAIN=$policy forbids it to fetch another." >&2
    echo "Install a newer Go from https://go.dev/dl, or allow the download: GOTOOLCHAIN=auto" >&2
    exit 1
    ;;
esac
echo "This is Go $have and kaz needs $need: go fetches that toolchain now (GOTOOLCHAIN=$policy)."
go version
