#!/usr/bin/env bash
# Puts Postfix's smtp-source and smtp-sink into virtbench's cache, to compare with: the package itself would take the place of
# this machine's mail server.
#
# Needs no root where the libraries are there that the programs need. Running it again does nothing.
set -euo pipefail
export LC_ALL=C

cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}
place=$cache/postfix
fail() { echo "setup-smtp-source: $*" >&2; exit 1; }

# Those that the package depends on; Debian's names of them change with its releases.
libraries=$(apt-cache depends --important postfix 2>/dev/null | sed -n 's/^ *Depends: \(lib[^ ]*\)$/\1/p')
[[ -n $libraries ]] || fail "apt knows no postfix: run apt-get update"
missing=()
for library in $libraries; do
  dpkg-query -W -f '${Status}' "$library" 2>/dev/null | grep '^install ok installed$' >/dev/null || missing+=("$library")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  [ "$(id -u)" = 0 ] && root=() || root=(sudo)
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [[ -x $place/smtp-source ]]; then exit 0; fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/setup.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching postfix"
(cd "$work" && apt-get -qq download postfix 2>/dev/null) || fail "apt-get download postfix failed"
dpkg -x "$work"/*.deb "$work/all"
mkdir "$work/postfix"
cp "$work"/all/usr/sbin/smtp-{source,sink} "$work"/all/usr/lib/postfix/libpostfix-{global,util}.so "$work/postfix/" ||
  fail "the package postfix has no smtp-source, smtp-sink and libraries of theirs where they are looked for"
rm -rf "$place"
mv "$work/postfix" "$place"
