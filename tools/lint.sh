#!/usr/bin/env bash
# Runs the linter (bin/golangci-lint and bin/deadcode, built by make lint) on every module of this repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source tools/steps.sh

# Findings are fixed in the code, or excluded in .golangci.yml with a reason.
no_nolint() {
  if grep -rnE --include='*.go' '//[[:space:]]*nolint' .; then
    echo "nolint comments are not allowed: change the code, or add an exclusion with its reason to .golangci.yml." >&2
    return 1
  fi
}

# package_comment prints the comments before the package clause of the Go files in a directory, tests left out.
package_comment() {
  find "$1" -maxdepth 1 -name '*.go' ! -name '*_test.go' -exec awk '
    /^\/\// { text = text substr($0, 3); next }
    /^package / { print text; text = ""; nextfile }
    { text = "" }' {} +
}

# Every package of the product names its layer in its package comment.
layers_named() {
  local dir dirs missing=0
  dirs=$(go list -f '{{if .GoFiles}}{{.Dir}}{{end}}' ./internal/...) || return 1
  while read -r dir; do
    if ! package_comment "$dir" | grep -qiE 'layer L[0-4]|(any|every|no) layer'; then
      echo "${dir#"$root/"}: the package comment must name its layer, for example: Layer L2." >&2
      missing=1
    fi
  done <<<"$dirs"
  return "$missing"
}

# Every function is reachable from a program or a test. The modules below test use internal/testkit and localazure,
# too: they are left out.
all_reachable() {
  local found
  found=$("$root/bin/deadcode" -test ./...) || return 1
  found=$(grep -vE '^(internal/testkit|localazure)/' <<<"$found" || true)
  if [[ -n $found ]]; then
    printf '%s\n' "$found" "Remove these functions, or call them." >&2
    return 1
  fi
}

lint() (
  cd "$1"
  "$root/bin/golangci-lint" run --config "$root/.golangci.yml" ./...
)

step "no nolint comments" no_nolint
step "every package names its layer" layers_named
step "every function is reachable" all_reachable
while read -r module; do
  if has_code "$module"; then
    step "lint $module" lint "$module"
  fi
done < <(modules)
steps_done "Lint"
