#!/usr/bin/env bash
# Puts a kernel of User Mode Linux into virtbench's cache: Debian's package user-mode-linux, without installing it.
#
# The package of this Debian release is taken if programs run under it here: kernels before 6.12 cannot keep the registers of newer
# processors. Else it is that of Debian's next release or of unstable, with the C library that it needs beside it. Kept are the program
# and the modules of virtual devices and overlays with all they depend on. Running it again does nothing.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C
. ./other-release.sh

package=user-mode-linux
cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}
kept='^kernel/(drivers/(block|char|net|virtio)|fs/(overlayfs|fuse)|crypto|lib)[/.]'

fail() { echo "setup-uml: $*" >&2; exit 1; }
[[ $(uname -m) == x86_64 ]] || { echo "setup-uml: User Mode Linux runs on x86_64 only: left out"; exit 0; }
for program in apt-get apt-cache dpkg depmod flock; do
  command -v "$program" >/dev/null || fail "$program is missing: apt install apt dpkg kmod util-linux"
done

mkdir -p "$cache"
exec 9>"$cache/.setup.lock"
flock -w 600 9 || fail "another set-up has been running for ten minutes"
stamp="$package $(cksum <setup-uml.sh) $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
if [[ -f $cache/uml/package && $(<"$cache/uml/package") == "$stamp" ]]; then
  echo "User Mode Linux $("$cache/uml/usr/bin/linux.uml" --version) is in $cache/uml already"
  exit 0
fi

work=$(mktemp -d "$cache/setup.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# Unpacks the package of a release, or of this one, to $work/all.
fetch() {
  rm -rf "$work/all" "$work/debs"
  if [[ $1 == own ]]; then
    mkdir "$work/debs"
    (cd "$work/debs" && apt-get -qq -o APT::Sandbox::User=root download "$package" 2>/dev/null)
  else
    fetch_packages "$1" "$work" "$package" libc6
  fi
  for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/all"; done
}

# Lets the program find the C library beside it, at its place in the cache.
with_library() {
  command -v patchelf >/dev/null || fail "patchelf is missing: apt install patchelf"
  local library=$cache/uml/library
  mkdir -p "$work/uml/library"
  cp "$work/all"/usr/lib/x86_64-linux-gnu/{libc.so.6,ld-linux-x86-64.so.2} "$work/uml/library/"
  patchelf --set-interpreter "$library/ld-linux-x86-64.so.2" --set-rpath "$library" "$work/uml/usr/bin/linux.uml"
}

install() {
  rm -rf "$work/uml"
  local program=$work/all/usr/bin/linux.uml
  [[ -x $program ]] || program=$work/all/usr/bin/linux
  local modules release to
  modules=$(find "$work/all/usr/lib/uml/modules" -mindepth 1 -maxdepth 1 -type d -print -quit)
  [[ -x $program && -n $modules ]] || fail "$package holds no kernel or no modules"
  release=${modules##*/}
  to=$work/uml/usr/lib/uml/modules/$release
  mkdir -p "$work/uml/usr/bin" "$to"
  cp "$program" "$work/uml/usr/bin/linux.uml"
  [[ $1 == own ]] || with_library
  cp "$modules"/modules.builtin "$modules"/modules.order "$to/"
  [[ ! -f $modules/modules.builtin.modinfo ]] || cp "$modules/modules.builtin.modinfo" "$to/"
  # modules.dep names after each module all that it needs, directly or not.
  awk -v kept="$kept" -F': *' '$1 ~ kept { print $1; n = split($2, need, " "); for (i = 1; i <= n; i++) print need[i] }' \
    "$modules/modules.dep" | sort -u | tar -C "$modules" -cf - -T - | tar -C "$to" -xf -
  # depmod looks for them where a kernel's are.
  mkdir -p "$work/uml/lib"
  ln -s ../usr/lib/uml/modules "$work/uml/lib/modules"
  depmod -b "$work/uml" "$release"
  echo "$stamp" >"$work/uml/package"
  rm -rf "$cache/uml"
  mv "$work/uml" "$cache/uml"
}

# Whether a program ends well as the first process of a guest: the kernel panics for want of another, and says with which exit code.
runs() {
  mkdir -p "$work/run"
  { TMPDIR=/dev/shm HOME=$work/run timeout 30 "$cache/uml/usr/bin/linux.uml" mem=64M "uml_dir=$work/run" umid=probe con=null con0=null,fd:1 \
    console=tty0 rootfstype=hostfs rootflags=/ ro init=/bin/true </dev/null >"$work/said" 2>&1; } 2>/dev/null || true
  grep -a -q 'exitcode=0x00000000' "$work/said"
}

for suite in own trixie sid; do
  echo "fetching $package of ${suite/own/this release}"
  fetch "$suite" || { echo "setup-uml: it cannot be fetched"; continue; }
  install "$suite"
  if runs; then
    echo "User Mode Linux $("$cache/uml/usr/bin/linux.uml" --version) is in $cache/uml ($(du -sh "$cache/uml" | cut -f 1))"
    exit 0
  fi
  echo "setup-uml: programs do not run under this one here"
done
rm -rf "$cache/uml"
fail "no User Mode Linux runs here: is ptrace or seccomp forbidden, or /dev/shm not there?"
