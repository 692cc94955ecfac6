# Roots of Debian, bare ones for checks of what people get: sourced by scripts that make them. Needs root, mmdebstrap and util-linux.
# shellcheck shell=bash

roots=${XDG_CACHE_HOME:-$HOME/.cache}/virtbench/roots

# Ends the script unless it is root's and finds these programs. The first word names the packages that bring them.
require() {
  local packages=$1 me program
  me=$(basename "$0" .sh)
  shift
  if [ "$(id -u)" != 0 ]; then echo "$me: this needs root: it changes into a root of Debian" >&2; exit 4; fi
  for program in "$@"; do
    command -v "$program" >/dev/null || { echo "$me: there is no $program: apt install $packages" >&2; exit 4; }
  done
  mkdir -p "$roots"
}

# Runs mmdebstrap. What it mounts and starts goes with this script, however that ends.
make_root() {
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc mmdebstrap --quiet "$@"
}

# Prints the path of the tarball of a release's bare root, which is made when it is first asked for.
bare_root_tar() {
  local tar=$roots/$1.tar
  if [ ! -s "$tar" ]; then make_root --variant=apt --format=tar "$1" "$tar.part" && mv "$tar.part" "$tar"; fi
  echo "$tar"
}

# Unpacks a release's bare root into the folder $root, with this host's names of the network.
unpack_bare_root() {
  chmod 755 "$root"
  tar -C "$root" -xf "$(bare_root_tar "$1")" --exclude='./dev/*'
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # Packages start no servers.
  printf 'exit 101\n' >"$root/usr/sbin/policy-rc.d"
}

# Runs in $root with namespaces of its own, so that whatever is mounted or started there ends with it.
inside() {
  unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" \
    sh -c 'for part in dev sys; do mount --rbind /$part "$0/$part"; done; exec chroot "$0" "$@"' "$root" "$@"
}
