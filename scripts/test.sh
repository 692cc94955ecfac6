#!/usr/bin/env bash
# Runs every test and ends with what failed and why, so that the last lines of a log are enough: test.sh COMMAND...
# The whole output is kept in target/test.log.
set -uo pipefail
cd "$(dirname "$0")/.."

# Many tests wait for a guest or for their turn: one more than there are processors keeps these busy.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) + 1))}

log=target/test.log
mkdir -p target
"$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
((code == 0)) && exit 0

echo
echo "What failed (the whole output is in $log):"
awk '
  function short(text) { return length(text) <= 800 ? text : substr(text, 1, 300) " ... " substr(text, length(text) - 480) }
  function end() { if (name != "") printf "  %s: %s\n", name, (why == "" ? "no message" : short(why)); name = ""; why = ""; lines = 0 }
  /^---- .* (stdout )?----$/ { end(); name = $2; next }
  /^failures:$/ || /^test result:/ { end(); next }
  /^stack backtrace:/ { lines = 0; next }
  name != "" && / panicked at / { why = why (why == "" ? "" : " | ") $0; lines = 1; next }
  name != "" && lines > 0 && lines < 40 && $0 != "" && !/^note: / { why = why " " $0; lines++; next }
  /^error(\[E[0-9]+\])?: / { end(); other[++errors] = $0 }
  END { end(); for (i = 1; i <= errors && i <= 5; i++) printf "  %.300s\n", other[i] }
' "$log" | head -n 30
exit "$code"
