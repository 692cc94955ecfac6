#!/usr/bin/env bash
# Runs virtbench in a job of a build server, compares with the base's run where there is one, and ends with virtbench's exit code.
# The summary in Markdown goes where GitHub's jobs have theirs, into a file for GitLab, and to stdout elsewhere.
#
#   virtbench-ci.sh study compare --environment native: --grid quick
#   virtbench-ci.sh load --target test.img --size 256MiB --time 10s
#
# VIRTBENCH          the command [virtbench]
# VIRTBENCH_COMMAND  its words, where none stand behind this script's name: split at spaces, without quotes
# VIRTBENCH_OUT      the run folder of a study [virtbench-run]
# VIRTBENCH_BASE     the run folder to compare with; where it does not exist nothing is compared
# VIRTBENCH_MARGIN   how much more or less counts as the same [5%]
# VIRTBENCH_FAIL_ON  regression, undecided, both with a comma, or none [regression]
# VIRTBENCH_SUMMARY  the file that gets the summary [that of the system]
set -uo pipefail

virtbench=${VIRTBENCH:-virtbench}
out=${VIRTBENCH_OUT:-virtbench-run}
base=${VIRTBENCH_BASE:-}
margin=${VIRTBENCH_MARGIN:-5%}
fail_on=${VIRTBENCH_FAIL_ON:-regression}

words=("$@")
if [ ${#words[@]} -eq 0 ]; then read -r -a words <<<"${VIRTBENCH_COMMAND:-}"; fi
if [ ${#words[@]} -eq 0 ]; then
  echo "virtbench-ci: which command? Name it behind the script, or in VIRTBENCH_COMMAND: study compare --environment native:" >&2
  exit 2
fi
case $fail_on in
  none | regression | undecided | regression,undecided | undecided,regression) ;;
  *) echo "virtbench-ci: VIRTBENCH_FAIL_ON is regression, undecided, regression,undecided or none, not '$fail_on'" >&2; exit 2 ;;
esac
if ! command -v "$virtbench" >/dev/null; then
  echo "virtbench-ci: there is no command '$virtbench': install it, or name it in VIRTBENCH" >&2
  exit 4
fi

summary=${VIRTBENCH_SUMMARY:-${GITHUB_STEP_SUMMARY:-}}
# GitLab has no summary of a job: its file is an artifact, which a merge request shows.
if [ -z "$summary" ] && [ -n "${CI_PROJECT_DIR:-}" ]; then
  summary=$CI_PROJECT_DIR/virtbench.md
  : >"$summary" || exit 1
fi
told() { if [ -n "$summary" ]; then tee -a "$summary"; else cat; fi; }
quoted() { printf '\n````text\n'; cat; printf '````\n'; }
output() { if [ -n "${GITHUB_OUTPUT:-}" ]; then printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; fi; }

ended() {
  output exit-code "$1"
  exit "$1"
}

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

case ${words[0]} in
  study)
    "$virtbench" "${words[@]}" --out "$out" >"$scratch/said" 2>"$scratch/remarks"
    code=$?
    cat "$scratch/said"
    cat "$scratch/remarks" >&2
    output run "$out"
    if [ -r "$out/run.json" ]; then
      "$virtbench" report "$out" --format markdown | told
    fi
    if [ $code -ne 0 ]; then
      { echo "### \`virtbench ${words[*]}\` ended with exit code $code"; tail -n 20 "$scratch/remarks" | quoted; } | told
      ended $code
    fi
    ;;
  *)
    "$virtbench" "${words[@]}" >"$scratch/said" 2>"$scratch/remarks"
    code=$?
    cat "$scratch/remarks" >&2
    { echo "### \`virtbench ${words[*]}\`, exit code $code"; cat "$scratch/said" "$scratch/remarks" | tail -n 200 | quoted; } | told
    ended $code
    ;;
esac

if [ -z "$base" ]; then ended 0; fi
if [ ! -r "$base/run.json" ]; then
  echo "No run to compare with: there is none in \`$base\`." | told
  ended 0
fi
compare=("$virtbench" compare "$base" "$out" --margin "$margin" --markdown)
if [ "$fail_on" != none ]; then compare+=(--fail-on "$fail_on"); fi
"${compare[@]}" >"$scratch/compared" 2>"$scratch/remarks"
code=$?
{
  printf '\n### Against the base\n\n'
  cat "$scratch/compared"
  if [ $code -ne 0 ]; then quoted <"$scratch/remarks"; fi
} | told
cat "$scratch/remarks" >&2
# Without --fail-on the comparison itself may say that nothing could be judged: nobody asked to fail on it.
if [ "$fail_on" = none ] && [ $code -eq 10 ]; then code=0; fi
ended $code
