#!/usr/bin/env bash
# Installs the package of scripts/deb.sh with its Recommends in bare roots of Debian, uses it as an ordinary user, and removes it.
# Needs root, mmdebstrap, and the network for packages. DEB_SUITES names the releases.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/bare-root.sh
require "mmdebstrap lintian util-linux" mmdebstrap lintian unshare
package=$(find target/debian -maxdepth 1 -name 'virtbench_*.deb' 2>/dev/null | head -1) || true
[ -n "$package" ] || { echo "deb-check: there is no package: make deb" >&2; exit 4; }

echo "deb-check: lintian"
lintian --tag-display-limit 0 --fail-on error,warning --allow-root "$package"

root=
cleanup() { if [ -n "$root" ]; then rm -rf --one-file-system "$root"; fi; }
trap cleanup EXIT

# Everything that a package may leave, but for what apt and dpkg note of every package.
files() {
  find "$root" -xdev \( -path "$root/proc" -o -path "$root/sys" -o -path "$root/dev" -o -path "$root/tmp" -o -path "$root/home" \
    -o -path "$root/var/lib/apt" -o -path "$root/var/lib/dpkg" -o -path "$root/var/cache" -o -path "$root/var/log" \
    -o -path "$root/root" -o -path "$root/run" \) -prune -o -printf '%P\n' | sort
}

for suite in ${DEB_SUITES:-bookworm trixie}; do
  root=$(mktemp -d "$roots/root-XXXXXX")
  unpack_bare_root "$suite"
  cp "$package" "$root/tmp/virtbench.deb"
  export DEBIAN_FRONTEND=noninteractive

  echo "deb-check: $suite: what the package depends on and recommends"
  wanted=$(dpkg-deb -f "$package" Depends Recommends | sed 's/^[A-Za-z-]*: //; s/([^)]*)//g; s/|[^,]*//g; s/,/ /g' | tr '\n' ' ')
  inside apt-get update -qq
  # shellcheck disable=SC2086
  inside apt-get install -y -qq --no-install-recommends $wanted >/dev/null
  inside useradd --create-home visitor
  files >"$root/tmp/before"

  echo "deb-check: $suite: installed, used as another user"
  inside apt-get install -y -qq /tmp/virtbench.deb >/dev/null
  chmod 1777 "$root/tmp"
  cat >"$root/tmp/visit.sh" <<'VISIT'
set -e
cd "$HOME"
virtbench doctor
virtbench load --target disk.img --size 16MiB --bs 4k --read 70 --random 100 --ramp 0s --time 500ms
printf "blocks = ['4k']\nreads = [100]\nrandoms = [100]\n" >grid.toml
virtbench study native-vs-vm --grid grid.toml --repetitions 1 --size 16MiB --ramp 100ms --time 300ms --out run </dev/null
test -s run/report.html
virtbench report run --format markdown
man -w virtbench >/dev/null 2>&1 || test -s /usr/share/man/man1/virtbench.1.gz
VISIT
  inside su visitor -s /bin/sh -c 'sh /tmp/visit.sh'

  echo "deb-check: $suite: removed"
  inside apt-get purge -y -qq virtbench >/dev/null
  files >"$root/tmp/after"
  if ! diff "$root/tmp/before" "$root/tmp/after" >&2; then
    echo "deb-check: $suite: the package left something, or took something with it (above)" >&2
    exit 1
  fi
  cleanup
  root=
done
echo "deb-check: $package holds"
