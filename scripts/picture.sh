#!/usr/bin/env bash
# Draws the picture of a report that the README shows: picture.sh REPORT.html PICTURE.png
set -euo pipefail
[ $# = 2 ] || { echo "usage: picture.sh REPORT.html PICTURE.png" >&2; exit 2; }
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
  --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
  --user-data-dir="$profile" --window-size=1180,1125 --screenshot="$(realpath -m "$2")" \
  "file://$(realpath "$1")" 2>/dev/null
