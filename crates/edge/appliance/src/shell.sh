# IMAGE PLACE NAME [COMMAND ...]
set -e
trap 'echo "virtbench: the appliance cannot be mounted, see above" >&2; exit 125' EXIT
image=$1 place=$2 name=$3
shift 3
hostname "$name"
mount -t tmpfs -o mode=0755 tmpfs "$place"
cd "$place"
mkdir base upper work root
mount -o ro,loop "$image" base
mount -t overlay -o lowerdir=base,upperdir=upper,workdir=work overlay root
mount -t proc proc root/proc
mount -t sysfs -o ro sysfs root/sys
mount -t tmpfs -o mode=0755 tmpfs root/dev
mount -t tmpfs -o mode=0755 tmpfs root/run
mkdir root/dev/pts root/dev/shm
# The terminal is one of these.
mount --rbind /dev/pts root/dev/pts
mount -t tmpfs -o mode=1777 tmpfs root/dev/shm
for device in null zero full random urandom tty; do
  : >"root/dev/$device"
  mount --bind "/dev/$device" "root/dev/$device"
done
ln -s pts/ptmx root/dev/ptmx
ln -s /proc/self/fd root/dev/fd
for stream in stdin:0 stdout:1 stderr:2; do ln -s "/proc/self/fd/${stream#*:}" "root/dev/${stream%:*}"; done
if [ $# = 0 ]; then
  if [ -x root/bin/bash ]; then set -- /bin/bash -l; else set -- /bin/sh -l; fi
fi
trap - EXIT
set +e
chroot root /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
  TERM="${TERM:-dumb}" "$@"
exit $?
