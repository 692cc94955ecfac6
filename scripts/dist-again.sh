#!/usr/bin/env bash
# Builds the tarballs of the last commit once more, from a clone in another folder with nothing built, and compares the digests with
# those of scripts/dist.sh: the same source is the same bytes, wherever it is built.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${CARGO_TARGET_DIR:-target}/dist
[ -r "$out/SHA256SUMS" ] || { echo "dist-again: there is nothing to compare with: make dist" >&2; exit 4; }
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "dist-again: the clone has the last commit only: commit what was changed, then make dist dist-again" >&2
  exit 4
fi
again=$(mktemp -d "${TMPDIR:-/tmp}/virtbench-again-XXXXXX")
trap 'rm -rf "$again"' EXIT
git clone --quiet . "$again/somewhere/else"
(cd "$again/somewhere/else" && env -u CARGO_TARGET_DIR scripts/dist.sh >/dev/null)
if ! diff "$out/SHA256SUMS" "$again/somewhere/else/target/dist/SHA256SUMS" >&2; then
  echo "dist-again: the builds differ (above): one from $PWD, one from a clone elsewhere" >&2
  exit 1
fi
echo "dist-again: the same digests from two folders"
