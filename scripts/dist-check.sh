#!/usr/bin/env bash
# Starts the tarballs of scripts/dist.sh: that of this machine in a bare root with an older C library, Debian 11, and in one with none at
# all; that of another kind under the distribution's emulation of its user mode, in a root with nothing else.
# Needs root, mmdebstrap, qemu-user-static, and the network for packages.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/bare-root.sh
require "mmdebstrap" mmdebstrap
out=${CARGO_TARGET_DIR:-target}/dist
here=$(uname -m)
tarball_of() { find "$out" -maxdepth 1 -name "virtbench-*-$1-linux.tar.gz" 2>/dev/null | head -1; }
tarball=$(tarball_of "$here") || true
[ -n "$tarball" ] || { echo "dist-check: there is no tarball: make dist" >&2; exit 4; }
(cd "$out" && sha256sum --check --quiet SHA256SUMS)

root=$(mktemp -d "$roots/root-XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"

# A root without this host's devices: only programs are started.
inside() { unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" chroot "$root" "$@"; }
# What an ordinary user does first, with these options of an engine and the words that start the command. Without QEMU doctor says what is missing, with its own
# exit code.
used() {
  local folder
  folder=/$(basename "$1" .tar.gz)
  local engine
  read -r -a engine <<<"$2"
  shift 2
  mkdir -p "$root/proc" "$root/sys" "$root/tmp" "$root/work"
  inside "$@" "$folder/virtbench" load --target /work/t.img --size 4MiB --time 200ms --ramp 0s "${engine[@]}"
  code=0
  inside "$@" "$folder/virtbench" doctor --quiet --target-dir /work || code=$?
  [ "$code" = 4 ] || { echo "dist-check: doctor ended with $code without QEMU, not with 4" >&2; exit 1; }
}
emptied() { rm -rf --one-file-system "${root:?}"/*; }

echo "dist-check: a root with nothing in it"
tar -C "$root" -xzf "$tarball"
used "$tarball" "--engine io_uring"
emptied

echo "dist-check: Debian 11"
tar -C "$root" -xf "$(bare_root_tar bullseye)" --exclude='./dev/*'
tar -C "$root" -xzf "$tarball"
used "$tarball" "--engine io_uring"
emptied

for machine in x86_64 aarch64; do
  other=$(tarball_of "$machine")
  if [ "$machine" = "$here" ] || [ -z "$other" ]; then continue; fi
  emulator=$(command -v "qemu-$machine-static") ||
    { echo "dist-check: there is no qemu-$machine-static: apt install qemu-user-static" >&2; exit 4; }
  echo "dist-check: $machine, emulated, a root with nothing in it"
  tar -C "$root" -xzf "$other"
  install -D "$emulator" "$root/emulator"
  # The emulator has no io_uring.
  used "$other" "--engine psync --outstanding 1" /emulator
  emptied
  echo "dist-check: $other holds"
done
echo "dist-check: $tarball holds"
