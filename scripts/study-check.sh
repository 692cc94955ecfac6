#!/usr/bin/env bash
# Does what the README says first, in a bare root of Debian as its root: `make study`, then the platform's report card. STUDY_SUITE names
# the release. What is committed is checked. Needs root, mmdebstrap, git, and the network for packages and crates.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/bare-root.sh
require "mmdebstrap git util-linux" mmdebstrap git unshare

suite=${STUDY_SUITE:-trixie}
root=$(mktemp -d "$roots/root-XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
unpack_bare_root "$suite"
git clone --quiet --no-hardlinks . "$root/root/virtbench"
# Authorities that this host trusts besides Debian's, as where a proxy answers for the network.
if [ -n "$(ls /usr/local/share/ca-certificates 2>/dev/null)" ]; then
  mkdir -p "$root/usr/local/share/ca-certificates"
  cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates"
fi

# What is set in this shell is not what a newcomer has.
newcomer() { inside env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c "cd /root/virtbench && $1" </dev/null; }
echo "study-check: $suite: make, for it is not there"
newcomer "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq make >/dev/null"
began=$SECONDS
echo "study-check: $suite: make study"
newcomer "make study"
echo "study-check: $suite: make study took $((SECONDS - began)) s"
began=$SECONDS
newcomer "target/study/bin/virtbench study platform --profile minute --out platform"
echo "study-check: $suite: the report card took $((SECONDS - began)) s"
newcomer "target/study/bin/virtbench report platform --format line"
page=$root/root/virtbench/platform/report.html
[ -s "$page" ] || { echo "study-check: there is no report card" >&2; exit 1; }
if [ -n "${STUDY_CHECK_OUT:-}" ]; then mkdir -p "$STUDY_CHECK_OUT" && cp -r "$root/root/virtbench/platform" "$STUDY_CHECK_OUT"; fi
echo "study-check: the README's first commands hold on $suite"
