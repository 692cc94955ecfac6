#!/usr/bin/env bash
# A hypervisor for measurements: libvirtd in the folder FOLDER, with a mount and a process namespace of its own, until this script ends. Its
# guests end with it. Nothing of the host's libvirt is used or changed. The socket is FOLDER/run/libvirt/libvirt-sock.
#   libvirtd.sh FOLDER PORT [UUID [POOL]]
# Guests that move here arrive on PORT and the 15 behind it. A second one on this host needs a UUID of its own, as firmware tells hosts apart,
# and the POOL of the first, a folder, to move guests between them: its pool `shared`. In BEFORE are commands to run in its namespaces first, in
# UNSHARE more of unshare's options.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
port=$2 uuid=${3:-} pool=${4:-}
server=/usr/sbin/libvirtd
[ "$(id -u)" = 0 ] || { echo "libvirtd.sh: namespaces need root" >&2; exit 4; }
[ -x "$server" ] || { echo "libvirtd.sh: $server is missing: scripts/setup.sh test" >&2; exit 4; }

cd "$folder"
mkdir -p run/lock etc/storage/autostart lib log cache pool
cat > etc/qemu.conf <<CONF
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
migration_port_min = $port
migration_port_max = $((port + 15))
CONF
{
  printf '%s\n' 'listen_tls = 0' 'listen_tcp = 0' 'auth_unix_rw = "none"' 'unix_sock_rw_perms = "0700"' 'keepalive_interval = -1'
  [ -z "$uuid" ] || echo "host_uuid = \"$uuid\""
} > etc/libvirtd.conf
define_pool() {
  echo "<pool type='dir'><name>$1</name><target><path>$2</path></target></pool>" > "etc/storage/$1.xml"
  ln -sf "/etc/libvirt/storage/$1.xml" "etc/storage/autostart/$1.xml"
}
define_pool default "$folder/pool"
[ -z "$pool" ] || { mkdir -p "$pool"; define_pool shared "$pool"; }
# Debian's libvirtd looks for the user of its guests even where it is told another.
{ cat /etc/passwd; echo 'libvirt-qemu:x:64055:64055::/:/bin/false'; } > passwd
{ cat /etc/group; echo 'libvirt-qemu:x:64055:'; echo 'kvm:x:64056:'; } > group

# $1 and $2 are the inner shell's.
# shellcheck disable=SC2016
# shellcheck disable=SC2086 # several options, or none
exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child ${UNSHARE:-} --mount-proc sh -ec '
  mount --bind passwd /etc/passwd
  mount --bind group /etc/group
  mount --bind run /run
  for place in etc:/etc/libvirt lib:/var/lib/libvirt log:/var/log/libvirt cache:/var/cache/libvirt; do
    mkdir -p "${place#*:}"
    mount --bind "${place%%:*}" "${place#*:}"
  done
  eval "${BEFORE:-}"
  unset BEFORE UNSHARE
  # Not in place of this shell, which has to take what guests leave: the first process of a namespace is the parent of all orphans. One that
  # is killed comes back, as under systemd.
  while sleep 0.1; do "$1" --pid-file "$2/pid" 2>> "$2/log/libvirtd" || :; done' sh "$server" "$folder"
