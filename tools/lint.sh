#!/usr/bin/env bash
# Runs the linter (bin/golangci-lint, built by make lint) over every module of this repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source tools/steps.sh

layers_without_exceptions() {
  if grep -rnE --include='*.go' '//[[:space:]]*nolint.*(depguard|forbidigo|all)' .; then
    echo "A layer rule has no exceptions: move the code to the layer where it may do that." >&2
    return 1
  fi
}

# Every package of the product says its layer, because that is the first thing a reader wants to know.
layers_named() {
  local dir dirs missing=0
  dirs=$(go list -f '{{if .GoFiles}}{{.Dir}}{{end}}' ./internal/...) || return 1
  while read -r dir; do
    if ! go doc "$dir" | grep -qiE 'layer L[0-4]|(any|every|no) layer'; then
      echo "${dir#"$root/"}: the package comment does not name its layer, for instance: Layer L2." >&2
      missing=1
    fi
  done <<<"$dirs"
  return "$missing"
}

lint() (
  cd "$1"
  "$root/bin/golangci-lint" run --config "$root/.golangci.yml" ./...
)

step "no exceptions from layer rules" layers_without_exceptions
step "every package names its layer" layers_named
while read -r module; do
  if has_code "$module"; then
    step "lint $module" lint "$module"
  fi
done < <(modules)
steps_done "Lint"
