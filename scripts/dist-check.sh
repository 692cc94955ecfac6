#!/usr/bin/env bash
# Starts the tarball of scripts/dist.sh for this machine in a bare root with an older C library, Debian 11, and in one with none at all.
# Needs root, mmdebstrap, and the network for packages.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then echo "dist-check: this needs root: it changes into a root of Debian" >&2; exit 4; fi
command -v mmdebstrap >/dev/null || { echo "dist-check: there is no mmdebstrap: apt install mmdebstrap" >&2; exit 4; }
out=${CARGO_TARGET_DIR:-target}/dist
tarball=$(ls "$out"/virtbench-*-"$(uname -m)"-linux.tar.gz 2>/dev/null | head -1)
[ -n "$tarball" ] || { echo "dist-check: there is no tarball: make dist" >&2; exit 4; }
(cd "$out" && sha256sum --check --quiet SHA256SUMS)

cache=${XDG_CACHE_HOME:-$HOME/.cache}/virtbench/roots
mkdir -p "$cache"
root=$(mktemp -d "$cache/root-XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"

# What an ordinary user does first. Without QEMU doctor says what is missing, with its own exit code.
used() {
  tar -C "$root" -xzf "$tarball"
  mkdir -p "$root/proc" "$root/sys" "$root/tmp" "$root/work"
  unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" chroot "$root" "/$(basename "$tarball" .tar.gz)/virtbench" \
    load --target /work/t.img --size 4MiB --time 200ms --ramp 0s
  code=0
  unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" chroot "$root" "/$(basename "$tarball" .tar.gz)/virtbench" \
    doctor --quiet --target-dir /work || code=$?
  [ "$code" = 4 ] || { echo "dist-check: doctor ended with $code without QEMU, not with 4" >&2; exit 1; }
}

echo "dist-check: a root with nothing in it"
used
rm -rf --one-file-system "${root:?}"/*

echo "dist-check: Debian 11"
tar=$cache/bullseye.tar
if [ ! -s "$tar" ]; then mmdebstrap --quiet --variant=apt --format=tar bullseye "$tar.part" && mv "$tar.part" "$tar"; fi
tar -C "$root" -xf "$tar" --exclude='./dev/*'
used
echo "dist-check: $tarball holds"
