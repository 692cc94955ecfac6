#!/usr/bin/env bash
# Runs the small OpenStack that `scripts/setup-openstack.sh` has put into the cache, in namespaces of its own. `openstack-stand.sh run` prints `up` once it
# answers at http://127.0.77.1:5000/v3, and runs until its standard input ends or it is killed: nothing of it stays. One runs at a time.
set -euo pipefail
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
cd "$(dirname "$0")/.."
root=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}/openstack/root

fail() { echo "openstack-stand: $*" >&2; exit 1; }
[[ -x $root/usr/bin/nova-api ]] || fail "there is no OpenStack in $root: run scripts/setup-openstack.sh"
[ "$(id -u)" = 0 ] || fail "this needs root: it changes into a root of Debian"
exec 8>"$root/../.stand.lock"
flock -w 1800 8 || fail "another one has been running for half an hour"
# shellcheck disable=SC2016 # expanded by that shell
exec unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc="$root/proc" sh -c '
  mount --rbind /dev "$0/dev"
  put() { touch "$0/$2"; mount --bind "tests/openstack/$1" "$0/$2"; }
  put stand.sh root/stand.sh
  put serve-wsgi.py root/serve-wsgi.py
  # Nova looks for drivers among its own alone.
  put stand_driver.py usr/lib/python3/dist-packages/nova/virt/stand_driver.py
  put stand_volumes.py usr/lib/python3/dist-packages/cinder/volume/drivers/stand_volumes.py
  exec chroot "$0" /bin/bash /root/stand.sh "$1"
' "$root" "${1:-run}"
