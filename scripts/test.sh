#!/usr/bin/env bash
# Runs tests: test.sh [check]. Without a word every one of `make test`; with `check` those that need no guest and no server.
set -uo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
code=0
"$cargo" nextest run --workspace --locked --profile "${1:-default}" || code=$?
# Examples in the documentation.
"$cargo" test --doc --workspace --locked --quiet || code=$?
exit "$code"
