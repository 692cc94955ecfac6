#!/usr/bin/env bash
# Puts iperf3 of Debian 13 into virtbench's cache, with the libraries that it needs and without installing it. That of Debian 12 asks
# select before it reads, which costs a guest of User Mode Linux a second system call; from 3.17 on it waits in read, as virtbench's agent
# does. It runs where its folder is copied to. Running it again does nothing.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C
. ./other-release.sh

release=trixie
packages=(iperf3 libiperf0 libc6 libsctp1 libssl3t64 libzstd1 zlib1g)
cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}

fail() { echo "setup-iperf3: $*" >&2; exit 1; }
[[ $(uname -m) == x86_64 ]] || { echo "setup-iperf3: guests of User Mode Linux run on x86_64 only: left out"; exit 0; }
mkdir -p "$cache"
exec 9>"$cache/.setup.lock"
flock -w 600 9 || fail "another set-up has been running for ten minutes"
stamp="$release $(cksum <setup-iperf3.sh)"
if [[ -f $cache/iperf3/package && $(<"$cache/iperf3/package") == "$stamp" ]]; then
  echo "$("$cache/iperf3/iperf3" --version | head -n 1) is in $cache/iperf3 already"
  exit 0
fi

work=$(mktemp -d "$cache/setup.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{all,iperf3/library}
fetch_packages "$release" "$work" "${packages[@]}" || fail "the packages of $release cannot be fetched"
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/all"; done
to=$work/iperf3
cp -L "$work/all"/usr/lib/x86_64-linux-gnu/{ld-linux-x86-64.so.2,lib{c,m,crypto,iperf,sctp,z,zstd}.so.[0-9]} "$to/library/"
cp "$work/all/usr/bin/iperf3" "$to/program"
cat >"$to/iperf3" <<'END'
#!/bin/sh
here=${0%/*}
exec "$here/library/ld-linux-x86-64.so.2" --library-path "$here/library" "$here/program" "$@"
END
chmod 755 "$to/iperf3"
"$to/iperf3" --version >/dev/null || fail "what was unpacked does not run"
echo "$stamp" >"$to/package"
rm -rf "$cache/iperf3"
mv "$to" "$cache/iperf3"
echo "$("$cache/iperf3/iperf3" --version | head -n 1) is in $cache/iperf3 ($(du -sh "$cache/iperf3" | cut -f 1))"
