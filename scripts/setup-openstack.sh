#!/usr/bin/env bash
# Puts a small OpenStack into virtbench's cache, for `make soak` and `make bench`: a root of Debian 12 with Keystone, Placement, Glance, Nova, Cinder, MariaDB and
# RabbitMQ, their databases filled once, and Rally as a second client. `tests/openstack/stand.sh` runs in it; `scripts/openstack-stand.sh` starts it. It
# downloads some 450 MB and takes about ten minutes; the root has 2 GB.
#
# Running it again does nothing unless this file or stand.sh has changed. Needs root.
set -euo pipefail
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
cd "$(dirname "$0")/.."
# shellcheck source=scripts/bare-root.sh
. scripts/bare-root.sh

packages=(mariadb-server rabbitmq-server memcached keystone placement-api glance-api nova-api nova-conductor nova-scheduler nova-compute
  cinder-api cinder-scheduler cinder-volume
  python3-pymysql python3-memcache python3-openstackclient rally python3-rally-openstack iproute2 procps)
cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}/openstack

fail() { echo "setup-openstack: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "this needs root: it makes a root of Debian and changes into it"
for program in mmdebstrap unshare setpriv flock sha256sum tar; do
  command -v "$program" >/dev/null || fail "there is no $program: apt install mmdebstrap util-linux coreutils tar"
done
mkdir -p "$cache"
exec 9>"$cache/.setup.lock"
flock -w 3600 9 || fail "another set-up has been running for an hour"
of_packages=$(sha256sum scripts/setup-openstack.sh | cut -d ' ' -f 1)
of_state=$of_packages-$(sha256sum tests/openstack/{stand.sh,serve-wsgi.py,stand_driver.py,stand_volumes.py} | sha256sum | cut -d ' ' -f 1)
if [[ -f $cache/made && $(<"$cache/made") == "$of_state" ]]; then exit 0; fi
rm -f "$cache/made"

if [[ ! -f $cache/installed || $(<"$cache/installed") != "$of_packages" ]]; then
  room=$(df --output=avail -m "$cache" | tail -1)
  ((room > 6000)) || fail "$cache has $room MB free, and 6,000 are needed"
  echo "setup-openstack: installing OpenStack, which takes some ten minutes"
  rm -rf --one-file-system "$cache/root" "$cache/installed"
  # Packages start no servers.
  make_root --variant=minbase --mode=root \
    --aptopt='APT::Install-Recommends "false"' --aptopt='APT::Sandbox::User "root"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --essential-hook='printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"' \
    --include="$(IFS=,; echo "${packages[*]}")" bookworm "$cache/root" || fail "the packages cannot be installed"
  echo "$of_packages" >"$cache/installed"
fi
echo "setup-openstack: filling its databases"
scripts/openstack-stand.sh prepare </dev/null || fail "its databases cannot be filled: see $cache/root/var/lib/stand/log"
echo "$of_state" >"$cache/made"
echo "setup-openstack: an OpenStack is in $cache ($(du -shx "$cache" | cut -f 1))"
