#!/usr/bin/env bash
# Starts the small OpenStack of scripts/setup-openstack.sh, leads a server's whole life on it by virtbench, holds what Rally measures there against what
# virtbench does, does everything once more among many servers of others (VIRTBENCH_SERVERS, 1,000), and ends it.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/clouds.yaml" <<END
clouds:
  stand: {auth: {auth_url: 'http://127.0.77.1:5000', username: admin, password: stand-only-secret, project_name: bench}}
END
# It ends with its standard input, which this script holds open.
coproc stand { scripts/openstack-stand.sh run; }
read -r -t 600 up <&"${stand[0]}" || { echo "openstack-soak: it does not start" >&2; exit 1; }
[[ $up = up ]]
export VIRTBENCH_OPENSTACK="openstack:stand?clouds=$work/clouds.yaml&flavor=tiny&other-flavor=small&image=cirros"
export VIRTBENCH_SERVERS=${VIRTBENCH_SERVERS:-1000}
many=everything_is_done_among_a_thousand_servers_of_others
tests=("${CARGO:-cargo}" test --locked -p virtbench-platforms --test openstack --)
"${tests[@]}" --ignored --nocapture --test-threads 1 --skip "$many"
root=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}/openstack/root
chroot "$root" python3 - "$VIRTBENCH_SERVERS" <tests/openstack/fill.py
"${tests[@]}" --ignored --nocapture "$many"
