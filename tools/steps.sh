# Sourced by the scripts beside it and by .ci/run: named steps, each with its time, none hiding another's failure.

step_report=()
steps_failed=0

# step NAME COMMAND... says what begins, runs it, and remembers how it went. It never ends the script: every step is
# worth knowing about in one run. steps_done does. (Inside a function that is tested like this, bash ignores set -e, so
# a step that is a function answers for each of its commands itself.)
step() {
  local name=$1 start=$SECONDS outcome=ok
  shift
  printf '\n==> %s\n' "$name"
  if ! "$@" </dev/null; then
    outcome=FAILED
    steps_failed=$((steps_failed + 1))
  fi
  step_report+=("$(printf '%-7s %4d s  %s' "$outcome" $((SECONDS - start)) "$name")")
  printf '<== %s\n' "${step_report[-1]}"
}

# steps_done TITLE prints all steps with their times and fails if one of them did.
steps_done() {
  printf '\n%s, %d s in all\n' "$1" "$SECONDS"
  printf '  %s\n' "${step_report[@]}"
  if ((steps_failed)); then
    printf '%d of %d failed; the output of each is above, under its ==> line.\n' "$steps_failed" "${#step_report[@]}" >&2
    return 1
  fi
}

# modules lists the folders of this repository's Go modules, the root first.
modules() {
  find . \( -name .git -o -name bin -o -name testdata \) -prune -o -name go.mod -printf '%h\n' | sort
}

# has_code MODULE tells whether a module has Go code of its own: some only pin what is built from other modules.
has_code() {
  [[ -n $(find "$1" -name '*.go' -print -quit) ]]
}
