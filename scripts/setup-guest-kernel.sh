#!/usr/bin/env bash
# Puts a guest kernel into virtbench's cache: Debian's full kernel package, without installing it.
#
# Kept are the image and the modules of storage, file systems and virtual devices with all they
# depend on (100 of 400 MB). Needs no root. Running it again does nothing unless Debian has a
# newer kernel. An argument names another package than linux-image-amd64.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C

package=${1:-linux-image-amd64}
cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}

# The modules that are kept, as a regular expression on their path below lib/modules/RELEASE/kernel. A kernel in the cache with
# which others were kept is fetched anew.
kept='^kernel/(drivers/(ata|block|cdrom|char|dax|md|message|misc/vmw_vmci|nvdimm|nvme|scsi|target|vhost|virtio'
kept+='|net/virtio_net|usb/storage|gpu/drm/tiny/bochs|input/evdev)|fs|block|crypto|arch/x86/crypto|lib|net/vmw_vsock|net/9p)[/.]'

fail() { echo "setup-guest-kernel: $*" >&2; exit 1; }
for program in apt-get apt-cache dpkg depmod flock; do
  command -v "$program" >/dev/null || fail "$program is missing: apt install apt dpkg kmod util-linux"
done

mkdir -p "$cache"
exec 9>"$cache/.setup.lock"
flock -w 600 9 || fail "another set-up has been running for ten minutes"

# linux-image-amd64 is empty and depends on the package that holds the kernel.
while next=$(apt-cache depends --important "$package" 2>/dev/null |
  sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1) && [[ -n $next ]]; do
  package=$next
done
version=$(apt-cache show --no-all-versions "$package" 2>/dev/null | sed -n 's/^Version: //p' | head -n 1)
[[ -n $version ]] || fail "apt knows no $package: run apt-get update, or name another package"

wanted="$package $version"
stamp="$wanted $(cksum <<<"$kept")"
if [[ -f $cache/kernel/package && $(<"$cache/kernel/package") == "$stamp" ]]; then
  echo "$wanted is in $cache/kernel already"
  exit 0
fi

work=$(mktemp -d "$cache/setup.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
echo "fetching $wanted"
(cd "$work" && apt-get -qq download "$package=$version") || fail "apt-get download $package failed"
dpkg -x "$work"/*.deb "$work/all"

image=$(find "$work/all/boot" -name 'vmlinuz-*' -print -quit)
[[ -n $image ]] || fail "$package holds no kernel image"
release=${image##*/vmlinuz-}
from=$work/all/lib/modules/$release
to=$work/kernel/lib/modules/$release
[[ -d $from ]] || from=$work/all/usr/lib/modules/$release
[[ -d $from ]] || fail "$package holds no modules"
if [[ $from == */usr/lib/* ]]; then ln -s usr/lib "$work/all/lib"; fi

mkdir -p "$work/kernel/boot" "$to"
cp "$image" "$work/kernel/boot/"
cp "$from"/modules.{builtin,builtin.modinfo,order} "$to/"
depmod -b "$work/all" "$release"
# modules.dep names after each module all that it needs, directly or not.
awk -v kept="$kept" -F': *' '$1 ~ kept { print $1; n = split($2, need, " "); for (i = 1; i <= n; i++) print need[i] }' \
  "$from/modules.dep" | sort -u | tar -C "$from" -cf - -T - | tar -C "$to" -xf -
depmod -b "$work/kernel" "$release"
echo "$stamp" >"$work/kernel/package"

if [[ -e $cache/kernel ]]; then mv "$cache/kernel" "$work/old"; fi
mv "$work/kernel" "$cache/kernel"
echo "$wanted is in $cache/kernel ($(du -sh "$cache/kernel" | cut -f 1))"
