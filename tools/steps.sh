# Functions for named steps with their times. The scripts in this folder and .ci/run source this file.

step_report=()
steps_failed=0

# step NAME COMMAND... prints the name, runs the command, and records its result and time. A failed step does not end the
# script, so that one run shows the result of every step; steps_done fails at the end. Bash ignores set -e in a function
# that is tested like this, so a step that is a function must check each of its commands.
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

# beside NAME COMMAND... starts a step that runs beside the following ones. Its output is kept until join prints it.
beside_names=() beside_pids=() beside_logs=() beside_starts=()
beside() {
  local name=$1 log
  shift
  log=$(mktemp)
  printf '\n==> %s: begins, beside the following steps\n' "$name"
  "$@" </dev/null >"$log" 2>&1 &
  beside_names+=("$name") beside_pids+=($!) beside_logs+=("$log") beside_starts+=("$SECONDS")
  trap 'kill "${beside_pids[@]}" 2>/dev/null || true' EXIT
}

# join waits for the steps that beside started, prints their output, and records their results and times.
join() {
  local i outcome
  for i in "${!beside_pids[@]}"; do
    outcome=ok
    wait "${beside_pids[i]}" || outcome=FAILED
    printf '\n==> %s\n' "${beside_names[i]}"
    cat "${beside_logs[i]}"
    rm "${beside_logs[i]}"
    [[ $outcome == ok ]] || steps_failed=$((steps_failed + 1))
    step_report+=("$(printf '%-7s %4d s  %s' "$outcome" $((SECONDS - beside_starts[i])) "${beside_names[i]}")")
    printf '<== %s\n' "${step_report[-1]}"
  done
  beside_names=() beside_pids=() beside_logs=() beside_starts=()
  trap - EXIT
}

# steps_done TITLE prints all steps with their times and fails if one of them failed.
steps_done() {
  printf '\n%s, %d s in all\n' "$1" "$SECONDS"
  printf '  %s\n' "${step_report[@]}"
  if ((steps_failed)); then
    printf '%d of %d steps failed; the output of each is above, under its ==> line.\n' "$steps_failed" "${#step_report[@]}" >&2
    return 1
  fi
}

# modules lists the folders of this repository's Go modules, the root first.
modules() {
  find . \( -name .git -o -name bin -o -name testdata \) -prune -o -name go.mod -printf '%h\n' | sort
}

# has_code MODULE reports whether a module has Go code. Some modules only pin what is built from other modules.
has_code() {
  [[ -n $(find "$1" -name '*.go' -print -quit) ]]
}
