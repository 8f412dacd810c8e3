# shellcheck shell=bash
# What `./mmedge test` runs, sourced by it: format, lint, types and tests, in its environment.
# The script has set root, venv and python, and defined say and fail.
# shellcheck disable=SC2154

check() { # name, command...
  local name=$1
  shift
  say "$name: ${*/#$venv\/bin\//}"
  "$@" || failed+=("$name")
}

# Two workers, each with graphs in a ROS domain of its own. A graph of a dozen processes depends on
# the clock, and a busy machine can make it late: tests that failed are tried again, alone and once
# the machine has time. They are named, because a defect can show now and then only.
run_live_tests() {
  local cache=$venv/.live-tests code=0 try name before after
  rm -rf "$cache"
  "$python" -m pytest -o cache_dir="$cache" -n 2 --dist loadfile --no-loadscope-reorder \
    test/ros || code=$?
  before=$(names_of_failed "$cache")
  for try in second third; do
    [[ $code == 1 && -n $before ]] || break
    say "live tests that failed: a $try try, alone"
    "$python" bootstrap/wait_for_calm.py >&2
    code=0
    "$python" -m pytest -o cache_dir="$cache" --last-failed test/ros || code=$?
    after=$(names_of_failed "$cache")
    while read -r name; do
      grep -qxF -- "$name" <<<"$after" || say "unsteady: $name passed in its $try try"
    done <<<"$before"
    before=$after
  done
  return "$code"
}

names_of_failed() { # pytest's cache
  sed -n 's/^ *"\(.*\)": true,\{0,1\}$/\1/p' "$1/v/cache/lastfailed" 2>/dev/null || true
}

# Live graphs depend on the clock and leave half of the time of the processors: what only computes,
# for a minute or more, takes that and gives way to them. The rest follows on all cores. What is
# started with & would leave its children deaf to Ctrl-C.
run_all_tests() {
  local log=$venv/computing-tests.log path apart=()
  local computing=(test/regression test/lab/training/test_{with,detectors_with}_torch.py)
  say "beside the live tests: ${computing[*]}; log: ${venv##*/}/${log##*/}"
  nice -n 10 env --default-signal=INT,QUIT "$python" -m pytest -n logical --dist loadfile \
    "${computing[@]}" >"$log" 2>&1 &
  computing_pid=$!
  check 'live tests' run_live_tests
  wait "$computing_pid" || failed+=('tests beside the live ones')
  computing_pid=
  cat "$log"
  for path in "${computing[@]}"; do apart+=(--ignore "$path"); done
  check tests "$python" -m pytest -n logical --dist loadfile --no-loadscope-reorder \
    --ignore test/ros "${apart[@]}"
}

run_tests() {
  trap 'exit 130' INT
  failed=()
  cd "$root" || exit
  export PATH=$venv/bin:$PATH
  # Each of hundreds of processes would compile what it imports.
  unset PYTHONDONTWRITEBYTECODE
  check format ruff format --check .
  check lint ruff check .
  check rooms lint-imports
  check scripts shellcheck -x mmedge .ci/run bootstrap/tests.sh
  check types mypy --num-workers 2
  if (($#)); then
    check tests "$python" -m pytest "$@"
  else
    run_all_tests
  fi
  if ((${#failed[@]})); then
    fail "failed: ${failed[*]}"
  fi
}
