#!/bin/sh
# Makes a root and its image, as root of namespaces of its own that have no network. What is mounted here is gone with them.
#
# In the folder VIRTBENCH_BUILD: debs, the packages' files by name; exclude, patterns; dpkg.cfg; before, after and run, which
# build_folder.rs writes. VIRTBENCH_APT, _SUITE, _PACKAGES, _NAME, _DATA, _UUID and _HASH_SEED say the rest. It leaves
# root.ext4 and packages there.
set -eu
# Times in the image, in seconds since 1970 and as debugfs takes it.
epoch=1577836800 day=18262 date=20200101000000
export LC_ALL=C.UTF-8 TZ=UTC SOURCE_DATE_EPOCH=$epoch E2FSPROGS_FAKE_TIME=$epoch

# Files of the recipe; the root decides what a path in it means.
put() { # ROOT FOLDER
  while read -r number mode owner path; do
    chroot "$1" /bin/sh -ec 'mkdir -p "$(dirname "$1")"; cat >"$1"; chown "$3:" "$1"; chmod "$2" "$1"' \
      put "$path" "$mode" "$owner" <"$2/$number"
  done <"$2/list"
}

setup() { # ROOT
  mkdir -p "$1/var/cache/apt/archives/partial" "$1/var/lib/apt/lists" "$1/etc/dpkg/dpkg.cfg.d"
  cp "$VIRTBENCH_BUILD/dpkg.cfg" "$1/etc/dpkg/dpkg.cfg.d/virtbench"
  cp -r "$VIRTBENCH_APT/lists/." "$1/var/lib/apt/lists/"
  while read -r deb; do
    cp --reflink=auto "$VIRTBENCH_APT/archives/$deb" "$1/var/cache/apt/archives/"
  done <"$VIRTBENCH_BUILD/debs"
}

before_packages() { # ROOT
  # What mmdebstrap took from this host.
  echo "$VIRTBENCH_NAME" >"$1/etc/hostname"
  printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %s\n' "$VIRTBENCH_NAME" >"$1/etc/hosts"
  rm -f "$1/etc/resolv.conf"
  : >"$1/etc/resolv.conf"
  put "$1" "$VIRTBENCH_BUILD/before"
}

customize() { # ROOT
  echo "virtbench: finishing"
  while read -r name home; do
    useradd --prefix "$1" --system --user-group --no-create-home --home-dir "$home" --shell /bin/sh "$name"
    chroot "$1" /bin/sh -ec 'mkdir -p "$2"; chown "$1:" "$2"' home "$name" "$home"
  done <"$VIRTBENCH_BUILD/users"
  put "$1" "$VIRTBENCH_BUILD/after"
  for script in "$VIRTBENCH_BUILD"/run/*; do
    [ -e "$script" ] || continue
    chroot "$1" /bin/sh -ec "$(cat "$script")" ||
      { echo "virtbench-failed: build.run, script ${script##*/}" >&2; exit 1; }
  done
  if [ -n "$VIRTBENCH_DATA" ]; then
    chroot "$1" /bin/sh -ec 'mkdir -p "$2"; chown "$1:" "$2"' data "${VIRTBENCH_DATA%%:*}" "${VIRTBENCH_DATA#*:}" ||
      { echo "virtbench-failed: data.folder for data.user" >&2; exit 1; }
  fi
}

# Takes away what differs from build to build, and what a root does without.
clean() { # ROOT
  ( cd "$1"
    while read -r pattern; do find . -depth -path ".$pattern" -delete || :; done <"$VIRTBENCH_BUILD/exclude"
    for folder in dev run tmp var/tmp var/cache var/log; do
      [ ! -d "$folder" ] || find "$folder" -mindepth 1 ! -type d -delete
    done
    find dev run tmp var/tmp var/cache/apt var/cache/debconf var/lib/apt/lists -mindepth 1 -delete
    rm -rf etc/apt/sources.list etc/apt/sources.list.d/* etc/apt/apt.conf.d/99mmdebstrap \
      etc/dpkg/dpkg.cfg.d/virtbench etc/dpkg/dpkg.cfg.d/99mmdebstrap
    rm -f etc/passwd- etc/group- etc/shadow- etc/gshadow- etc/subuid- etc/subgid- etc/.pwd.lock var/lib/dpkg/*-old \
      var/lib/dpkg/lock* var/lib/dbus/machine-id etc/ssh/ssh_host_* var/lib/systemd/random-seed
    # The key that ssl-cert makes for this host alone, and links to its certificate.
    rm -f etc/ssl/private/ssl-cert-snakeoil.key
    find etc/ssl/certs -lname '*ssl-cert-snakeoil.pem' -delete 2>/dev/null || :
    rm -f etc/ssl/certs/ssl-cert-snakeoil.pem
    : >etc/machine-id
    if [ -e etc/shadow ]; then
      awk -F: -v OFS=: -v day=$day '$3 != "" { $3 = day } { print }' etc/shadow >etc/shadow.new
      cat etc/shadow.new >etc/shadow
      rm etc/shadow.new
    fi
    find . -newermt @$epoch -exec touch -h -d @$epoch {} + )
}

# The size of the file system follows from what is in it alone, not from the host's.
image() { # ROOT FILE
  set -- "$1" "$2" $(find "$1" -printf '%y %s\n' | awk '
    $1 == "f" { blocks += int(($2 + 4095) / 4096) } { inodes += 1; blocks += 1 }
    END { print int((blocks * 4096 * 1.02 + inodes * 320) / 16777216 + 8) * 16, int(inodes * 1.25) + 4096 }')
  rm -f "$2"
  # That of this host may have other ideas.
  printf '[fs_types]\n ext4 = {\n }\n small = {\n }\n' >mke2fs.conf
  export MKE2FS_CONFIG="$PWD/mke2fs.conf"
  truncate -s "${3}M" "$2"
  mke2fs -q -F -t ext4 -b 4096 -I 256 -m 0 -N "$4" -U "$VIRTBENCH_UUID" -d "$1" \
    -O none,dir_index,dir_nlink,ext_attr,extent,extra_isize,filetype,flex_bg,huge_file,large_file,metadata_csum,sparse_super,64bit \
    -E "hash_seed=$VIRTBENCH_HASH_SEED,root_owner=0:0,lazy_itable_init=0,nodiscard" "$2"
  # mke2fs takes these times from the tree, where nobody can set them.
  inodes=$(dumpe2fs -h "$2" 2>/dev/null | awk -F: '/^Inode count/ { all = $2 } /^Free inodes/ { free = $2 } END { print all - free }')
  { echo 2; seq 11 "$inodes"; } |
    awk -v date=$date '{ printf "sif <%d> ctime %s\nsif <%d> atime %s\n", $1, date, $1, date }' >debugfs.txt
  debugfs -w -f debugfs.txt "$2" >debugfs.log 2>&1
}

main() {
  cd "$VIRTBENCH_BUILD"
  mkdir lower upper work tree tmp
  # What mmdebstrap has while it runs goes with this folder, also after a kill.
  export TMPDIR="$VIRTBENCH_BUILD/tmp"
  # What dpkg wants on disk at once would take a third of the time, for a folder that a crash makes worthless.
  mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,volatile overlay tree 2>/dev/null ||
    mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,volatile,userxattr overlay tree 2>/dev/null ||
    echo "virtbench: no overlay here, which makes this slower"
  mkdir -m 755 tree/root
  hook='sh "$VIRTBENCH_BUILD/build.sh"'
  mmdebstrap --mode=root --format=directory --variant=essential --verbose --skip=update \
    --include="$VIRTBENCH_PACKAGES" --architectures="$VIRTBENCH_ARCHITECTURE" \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
    --setup-hook="$hook setup \"\$1\"" --essential-hook="$hook before_packages \"\$1\"" \
    --customize-hook="$hook customize \"\$1\"" \
    "$VIRTBENCH_SUITE" "$VIRTBENCH_BUILD/tree/root" "$@" 2>&1 </dev/null
  echo "virtbench: image"
  dpkg-query --admindir=tree/root/var/lib/dpkg -W -f '${Package} ${Version}\n' >packages
  clean tree/root
  image tree/root root.ext4
  sync root.ext4
  umount tree 2>/dev/null || :
  rm -rf tree upper work
}

step=$1
shift
"$step" "$@"
