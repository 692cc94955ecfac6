#!/usr/bin/env bash
# Puts systems that tests boot into virtbench's cache: for each architecture that is named (default: amd64 and arm64) Debian's
# kernel, and an initial file system with Debian's OpenSSH server, busybox and the modules of virtual devices. What is init
# there, and the keys, are added by who boots it.
#
# Nothing is installed, and this machine's own package lists stay as they are. Running it again does nothing; remove
# systems/ARCHITECTURE in the cache to have newer packages.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C
cd "$(dirname "$0")/.."

cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}
packages=(openssh-server busybox-static)
# ext4 asks for its checksum by name; later kernels have it built in under another.
modules=(virtio_pci virtio_blk virtio_net virtio-rng 'crc32c_generic?' ext4)

fail() { echo "setup-guest-system: $*" >&2; exit 1; }
for program in apt-get dpkg-deb readelf cpio xz flock sha256sum; do
  command -v "$program" >/dev/null || fail "$program is missing: apt install apt dpkg binutils cpio xz-utils util-linux coreutils"
done
mkdir -p "$cache/systems"
exec 8>"$cache/.systems.lock"
flock -w 1200 8 || fail "another set-up has been running for twenty minutes"

# Package lists of another architecture, beside this machine's own.
write_apt_configuration() { # ARCHITECTURE FOLDER
  mkdir -p "$2/state/lists/partial" "$2/cache/archives/partial"
  : >"$2/status"
  cat >"$2/apt.conf" <<END
APT::Architecture "$1";
APT::Architectures { "$1"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State "$2/state";
Dir::State::status "$2/status";
Dir::Cache "$2/cache";
END
}

# A program or library with the libraries that it needs.
take() { # PACKAGES' FILES, PATH IN THEM, INITIAL FILE SYSTEM, ITS PATH THERE
  local from=$1 file=$1/$2 to=$3 library
  [[ -e $to/$4 ]] && return
  mkdir -p "$(dirname "$to/$4")"
  cp -L "$file" "$to/$4"
  for library in $(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
    local found
    found=$(cd "$from" && find . -name "$library" ! -type d -print -quit)
    [[ -n $found ]] || fail "$2 needs $library, which no package has"
    take "$from" "$found" "$to" "lib/$library"
  done
}

# A module and all that it needs, in the order in which they are loaded.
take_modules() { # KERNEL'S MODULES, INITIAL FILE SYSTEM
  local name line file plain optional
  mkdir -p "$2/modules"
  for name in "${modules[@]}"; do
    optional=${name##*[^?]}
    name=${name%\?}
    line=$(grep -E "/$name\.ko(\.xz)?:" "$1/modules.dep" || true)
    if [[ -z $line ]]; then
      grep -q "/$name\.ko$" "$1/modules.builtin" || [[ -n $optional ]] || fail "the kernel has no module $name"
      continue
    fi
    # Each depends on those after it.
    for file in $(echo "$line" | tr -d : | tr ' ' '\n' | tac); do
      plain=$(basename "${file%.xz}")
      [[ -e $2/modules/$plain ]] && continue
      if [[ $file == *.xz ]]; then xz -dc "$1/$file" >"$2/modules/$plain"; else cp "$1/$file" "$2/modules/$plain"; fi
      echo "$plain" >>"$2/modules/order"
    done
  done
}

provide() { # ARCHITECTURE
  local architecture=$1 to=$cache/systems/$1 wanted work deb program loader image release kernel
  wanted=$(sha256sum scripts/setup-guest-system.sh | cut -d ' ' -f 1)
  if [[ -f $to/made && $(<"$to/made") == "$wanted" ]]; then
    echo "a system of $architecture is in $to already"
    return
  fi
  work=$(mktemp -d "$cache/systems/setup.XXXXXX")
  # shellcheck disable=SC2064 # this one's folder
  trap "rm -rf '$work'" EXIT
  echo "fetching a system of $architecture"
  write_apt_configuration "$architecture" "$work/apt"
  export APT_CONFIG=$work/apt/apt.conf
  apt-get -qq update || fail "apt-get update failed for $architecture"
  VIRTBENCH_CACHE=$work scripts/setup-guest-kernel.sh "linux-image-$architecture"
  apt-get -qq -y install --download-only "${packages[@]}" || fail "apt-get cannot fetch ${packages[*]} of $architecture"
  unset APT_CONFIG
  mkdir -p "$work/files" "$work/new/"{bin,dev,etc,proc,root,run,srv,sys,tmp}
  for deb in "$work/apt/cache/archives/"*.deb; do dpkg-deb -x "$deb" "$work/files"; done
  for program in bin/busybox usr/bin/busybox; do
    [[ -e $work/files/$program ]] && cp "$work/files/$program" "$work/new/bin/busybox"
  done
  take "$work/files" usr/sbin/sshd "$work/new" usr/sbin/sshd
  # Later versions divide the server.
  for program in sshd-session sshd-auth; do
    [[ ! -e $work/files/usr/lib/openssh/$program ]] ||
      take "$work/files" "usr/lib/openssh/$program" "$work/new" "usr/lib/openssh/$program"
  done
  loader=$(readelf -l "$work/files/usr/sbin/sshd" | sed -n 's/.*interpreter: \(.*\)\]$/\1/p')
  take "$work/files" "$(cd "$work/files" && find . -name "$(basename "$loader")" ! -type d -print -quit)" "$work/new" "${loader#/}"
  kernel=$work/kernel
  image=$(find "$kernel/boot" -name 'vmlinuz-*' -print -quit)
  release=${image##*/vmlinuz-}
  take_modules "$kernel/lib/modules/$release" "$work/new"
  printf 'root:*:0:0:root:/root:/bin/sh\nsshd:*:100:65534::/run/sshd:/bin/false\nnobody:*:65534:65534::/tmp:/bin/sh\n' >"$work/new/etc/passwd"
  printf 'root:*:0:\nnogroup:*:65534:\n' >"$work/new/etc/group"
  printf '/bin/sh\n' >"$work/new/etc/shells"
  rm -rf "$to"
  mkdir "$to"
  # Not packed: an emulated guest would unpack it for seconds at each boot.
  (cd "$work/new" && find . | sort | cpio -o -H newc --owner 0:0 --quiet) >"$to/initramfs"
  cp "$image" "$to/vmlinuz"
  echo "$wanted" >"$to/made"
  rm -rf "$work"
  echo "a system of $architecture is in $to ($(du -sh "$to" | cut -f 1))"
}

[[ $# -gt 0 ]] || set -- amd64 arm64
for architecture in "$@"; do provide "$architecture"; done
