#!/usr/bin/env bash
# Lists the thirty slowest tests of the last `make test` with their seconds: for docs/slow-tests.md.
set -euo pipefail
cd "$(dirname "$0")/.."
results=target/nextest/default/tests.xml
[ -f "$results" ] || { echo "slow-tests.sh: there is no $results: run make test first" >&2; exit 4; }
grep -o '<testcase name="[^"]*" classname="[^"]*"[^>]* time="[^"]*"' "$results" |
  sed 's/<testcase name="\([^"]*\)" classname="\([^"]*\)".* time="\([^"]*\)"/\3 \2 \1/' | sort -rn | head -n 30
