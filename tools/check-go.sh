#!/usr/bin/env bash
# Checks that the Go tool exists and is new enough for go.mod, before a build fails with a less clear message.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

need=$(sed -n 's/^go //p' go.mod)
if ! command -v go >/dev/null; then
  echo "kaz needs Go $need or newer, and PATH has no go command: install it from https://go.dev/dl" >&2
  exit 1
fi
# Outside of the module, go does not switch to another toolchain.
have=$(cd / && GOTOOLCHAIN=local go env GOVERSION | sed 's/.*go\([0-9][0-9a-z.]*\).*/\1/')
policy=$(cd / && go env GOTOOLCHAIN)
if [[ $(printf '%s\n' "$need" "$have" | sort -V | head -n 1) == "$need" ]]; then
  exit 0
fi
case $policy in
  local | path)
    echo "kaz needs Go $need or newer; this is Go $have, and GOTOOLCHAIN=$policy forbids the download of another." >&2
    echo "Install a newer Go from https://go.dev/dl, or allow the download: GOTOOLCHAIN=auto" >&2
    exit 1
    ;;
esac
echo "This is Go $have and kaz needs $need: go downloads that toolchain now (GOTOOLCHAIN=$policy)."
go version
