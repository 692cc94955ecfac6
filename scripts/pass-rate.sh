#!/usr/bin/env bash
# How often a command that measures in real time succeeds: pass-rate.sh TIMES LEAST COMMAND... runs it TIMES times, says how
# often it succeeded, and fails below LEAST.
set -uo pipefail

times=$1 least=$2
shift 2
passed=0
for ((run = 1; run <= times; run++)); do
  if "$@"; then passed=$((passed + 1)); else echo "run $run of $times failed" >&2; fi
done
echo "$passed of $times runs passed: $*"
((passed >= least))
