#!/usr/bin/env bash
# Sets up a fake Proxmox VE for tests and comparisons in virtbench's cache: fakepve, and proxmoxer as a second client. Both come from PyPI, in
# an environment of their own. Running it again does nothing unless the versions below have changed.
set -euo pipefail
export LC_ALL=C

wanted='fakepve==0.5.0 proxmoxer==2.3.0 requests==2.32.5'
cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}/proxmox

fail() { echo "setup-proxmox: $*" >&2; exit 1; }
command -v flock >/dev/null || fail "flock is missing: apt install util-linux"
mkdir -p "$cache"
exec 9>"$cache/.setup.lock"
flock -w 600 9 || fail "another set-up has been running for ten minutes"
if [[ -x $cache/venv/bin/python && -f $cache/made-of && $(<"$cache/made-of") == "$wanted" ]]; then exit 0; fi

# The distribution's own, which has its packages beside it.
python=/usr/bin/python3
[[ -x $python ]] || python=$(command -v python3) || fail "python3 is missing: apt install python3-venv"
echo "setup-proxmox: installing $wanted"
rm -rf "$cache/venv" "$cache/made-of"
"$python" -m venv "$cache/venv" || fail "no environment can be made: apt install python3-venv"
# shellcheck disable=SC2086
"$cache/venv/bin/pip" --quiet --disable-pip-version-check install $wanted ||
  fail "PyPI cannot be reached, or has not these versions (PIP_INDEX_URL names a mirror)"
echo "$wanted" > "$cache/made-of"
