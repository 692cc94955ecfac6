#!/usr/bin/env bash
# Compiles a small kernel of User Mode Linux from Debian's source package into virtbench's cache. Its guests are at their init after a
# tenth of a second, those of the distribution's after one. What it has is in uml-kernel.config. Running it again does nothing.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C
. ./other-release.sh

source=linux-source-7.2
cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}
config=$PWD/uml-kernel.config

fail() { echo "uml-kernel: $*" >&2; exit 1; }
[[ $(uname -m) == x86_64 ]] || fail "User Mode Linux runs on x86_64 only"
for program in apt-get bc bison dpkg flex flock gcc make xz; do
  command -v "$program" >/dev/null || fail "$program is missing: scripts/setup.sh uml-kernel"
done

mkdir -p "$cache"
exec 9>"$cache/.uml-kernel.lock"
flock -n 9 || { echo "uml-kernel: another one is compiling: waiting"; flock -w 3600 9; }
stamp="$source $(cat uml-kernel.sh "$config" | cksum)"
if [[ -f $cache/uml-kernel/package && $(<"$cache/uml-kernel/package") == "$stamp" ]]; then
  echo "User Mode Linux $("$cache/uml-kernel/usr/bin/linux.uml" --version) is in $cache/uml-kernel already"
  exit 0
fi

work=$(mktemp -d "$cache/setup.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
echo "fetching $source"
cd "$work"
fetch_packages sid "$work" "$source" || fail "$source cannot be fetched"
dpkg -x debs/*.deb source
tar -C tree --strip-components=1 -xf "source/usr/src/$source.tar.xz"

# Its scheduler's clock counts ticks of 10 ms, and so do its accounts of what programs wait for (/proc/pressure). This one counts nanoseconds.
cat >> tree/arch/um/kernel/time.c << 'CLOCK'

unsigned long long notrace sched_clock(void)
{
	static unsigned long long first_ns;

	if (!first_ns)
		first_ns = os_nsecs();
	return os_nsecs() - first_ns;
}
CLOCK

echo "compiling it"
begun=$SECONDS
make -s -C tree ARCH=um allnoconfig KCONFIG_ALLCONFIG="$config" >"$work/log" 2>&1 || fail "its configuration failed: $(tail -n 3 "$work/log")"
# -O1 takes two thirds of -O2's time, and guests are as fast: a crossing costs what the host's system calls in it cost (docs/uml.md).
make -s -C tree ARCH=um KCFLAGS=-O1 -j"$(nproc)" linux >"$work/log" 2>&1 || fail "it does not compile: $(tail -n 5 "$work/log")"
to=$work/uml-kernel
mkdir -p "$to/usr/bin"
strip -o "$to/usr/bin/linux.uml" tree/linux
release=$("$to/usr/bin/linux.uml" --version)
mkdir -p "$to/usr/lib/uml/modules/$release"
: >"$to/usr/lib/uml/modules/$release/modules.dep"
cp tree/modules.builtin "$to/usr/lib/uml/modules/$release/"
echo "$stamp" >"$to/package"
rm -rf "$cache/uml-kernel"
mv "$to" "$cache/uml-kernel"
echo "User Mode Linux $release is in $cache/uml-kernel, compiled in $((SECONDS - begun)) s"
