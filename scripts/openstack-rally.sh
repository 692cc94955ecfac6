#!/usr/bin/env bash
# Runs Rally, which `scripts/setup-openstack.sh` has put beside the services, against the cloud of `scripts/openstack-stand.sh`:
#     openstack-rally.sh FOLDER [TASK]
# FOLDER has rally.conf and deployment.json, and keeps Rally's own database. The task FOLDER/TASK.json is run, and what Rally measured is
# FOLDER/TASK.result.json. Without a task it gets ready.
set -euo pipefail
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
cd "$(dirname "$0")/.."
root=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}/openstack/root

fail() { echo "openstack-rally: $*" >&2; exit 1; }
[[ -x $root/usr/bin/rally ]] || fail "there is no Rally in $root: run scripts/setup-openstack.sh"
[ "$(id -u)" = 0 ] || fail "this needs root: it changes into a root of Debian"
[[ -d ${1:-} ]] || fail "name a folder with rally.conf and deployment.json"
# shellcheck disable=SC2016 # expanded by that shell
exec unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" sh -c '
  mount --rbind /dev "$0/dev"
  mount -t tmpfs none "$0/tmp"
  mount --bind "$1" "$0/mnt"
  exec chroot "$0" /bin/bash -euc "
    export HOME=/tmp LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
    cd /mnt
    rally=(rally --config-file /mnt/rally.conf)
    if [[ ! -e /mnt/rally.sqlite ]]; then
      \"\${rally[@]}\" db create
      \"\${rally[@]}\" deployment create --filename /mnt/deployment.json --name stand
    fi
    [[ -n \"\$0\" ]] || exit 0
    \"\${rally[@]}\" task start --deployment stand /mnt/\$0.json
    \"\${rally[@]}\" task report --json --out /mnt/\$0.result.json
  " "$2"
' "$root" "$(realpath "$1")" "${2:-}"
