#!/usr/bin/env bash
# Brings a Debian machine to where virtbench can be built, run (study), tested (test), compared with
# other tools (bench), checked as code (lint), checked quickly (check), or held against real applications (predictions), packaged (package);
# where appliances can be made (appliances), or the small kernel of guests compiled (uml-kernel). Running it again changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-study}
# What `virtbench appliance build` and appliances that reach each other call.
appliances=(e2fsprogs iproute2 mmdebstrap uidmap util-linux)
packages=(gcc libc6-dev make ca-certificates curl e2fsprogs kmod patchelf qemu-system-x86 qemu-system-common qemu-utils xfsprogs)
case $purpose in
  study) ;;
  # Links the agent for Windows.
  install | lint | check) packages+=(gcc-mingw-w64-x86-64) ;;
  package)
    packages+=(buildah gcc-mingw-w64-x86-64 git lintian mmdebstrap qemu-user-static util-linux)
    # Links for the other kind of machine.
    case $(uname -m) in x86_64) packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross) ;; *) packages+=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross) ;; esac
    ;;
  appliances) packages=("${appliances[@]}") ;;
  uml-kernel) packages=(bc bison ca-certificates flex gcc libc6-dev make util-linux xz-utils) ;;
  test) packages+=("${appliances[@]}" binutils busybox-static chromium cpio fonts-dejavu-core fio gcc-mingw-w64-x86-64 libfaketime libnbd-bin libvirt-clients libvirt-daemon libvirt-daemon-driver-qemu mariadb-client-core mariadb-server-core nbdkit nginx openssh-client openssh-server openssl pgbouncer postgresql prometheus python3-venv qemu-system-arm qemu-user-static redis-server redis-tools strace systemd unzip util-linux wine wine64 xz-utils) ;;
  predictions)
    packages+=("${appliances[@]}" age bc binutils bison bzip2 ccrypt coreutils db5.3-util dbench duktape flac gcc gdbmtool git groff-base isync jq kyotocabinet-utils lame ldb-tools libarchive-tools libnbd-bin lmdb-utils lua5.4 m4 maildrop make mariadb-client-core mariadb-server-core mblaze nasm nbdkit ninja-build notmuch openssh-client openssh-sftp-server openssl p7zip plocate postgresql python3 qdbm-util qemu-user-static recutils redis-server redis-tools rhash ripgrep rocksdb-tools rsync signify-openbsd silversearcher-ag sqlite3 squashfs-tools tcc tcl tdb-tools tokyocabinet-bin ugrep unison unzip util-linux vorbis-tools webp xz-utils zip zstd)
    ;;
  bench) packages+=("${appliances[@]}" bonnie++ chromium dbench fonts-dejavu-core fio git iperf3 linux-perf mariadb-client-core mariadb-server-core nbdkit nginx openssh-client openssh-server openssl postgresql postgresql-client python3-venv qperf redis-server redis-tools unzip wrk) ;;
  *) echo "setup.sh: unknown purpose '$purpose': study, install, test, check, lint, bench, package, predictions, appliances or uml-kernel" >&2; exit 2 ;;
esac

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else echo "setup.sh: this needs root: $*" >&2; exit 4
  fi
}

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep '^install ok installed$' >/dev/null; }

missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  as_root apt-get update -qq
  # Tests start an ssh server and a web server of their own on loopback; nobody asked for one that the network reaches.
  if [[ " ${missing[*]} " == *" openssh-server "* ]]; then
    as_root mkdir -p /etc/systemd/system
    for unit in ssh.service ssh.socket; do as_root ln -sfn /dev/null "/etc/systemd/system/$unit"; done
  fi
  if [[ " ${missing[*]} " == *" nginx "* ]]; then
    as_root mkdir -p /etc/systemd/system
    as_root ln -sfn /dev/null /etc/systemd/system/nginx.service
  fi
  if [[ " ${missing[*]} " == *" pgbouncer "* ]]; then
    as_root mkdir -p /etc/systemd/system
    as_root ln -sfn /dev/null /etc/systemd/system/pgbouncer.service
  fi
  if [[ " ${missing[*]} " == *" prometheus "* ]]; then
    as_root mkdir -p /etc/systemd/system
    as_root ln -sfn /dev/null /etc/systemd/system/prometheus.service
  fi
  as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
# Those need no Rust.
case $purpose in appliances | uml-kernel) exit 0 ;; esac

# Rust: Debian 13 packages rustup; older releases need its own installer.
[ -r "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
if ! command -v cargo >/dev/null; then
  echo "setup: installing Rust"
  if apt-cache policy rustup 2>/dev/null | grep 'Candidate: [0-9]' >/dev/null; then
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq rustup >/dev/null
    rustup default stable
  else
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
    . "$HOME/.cargo/env"
  fi
fi
# The program inside guests and on other machines is linked statically against musl. Machines of another kind than this one
# are for an installed command and for tests.
targets=(x86_64-unknown-linux-musl)
case $purpose in install | lint | check | test | package) targets+=(aarch64-unknown-linux-musl x86_64-pc-windows-gnu) ;; esac
for target in "${targets[@]}"; do
  if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    echo "setup: adding the $target target"
    rustup target add "$target"
  fi
done
if [ "$purpose" = lint ] || [ "$purpose" = check ]; then
  for component in rustfmt clippy; do
    cargo "${component/rust/}" --version >/dev/null 2>&1 || rustup component add "$component"
  done
fi

# What waits for the network goes on beside what computes: in_background COMMAND..., and all_done, which fails with the first that did.
jobs=()
in_background() { "$@" & jobs+=($!); }
all_done() { for job in "${jobs[@]}"; do wait "$job"; done; }

# Runs the tests side by side. Built without optimisation, which takes a minute; it waits most of the time.
set_up_nextest() {
  cargo nextest --version >/dev/null 2>&1 || CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug cargo-nextest \
    --version 0.9.151 --no-default-features --features default-no-update
}
if [ "$purpose" = check ]; then
  set_up_nextest
  exit 0
fi
if [ "$purpose" = package ]; then
  cargo deb --version >/dev/null 2>&1 || CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug cargo-deb --version 3.8.0
  cargo cyclonedx --version >/dev/null 2>&1 || CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug cargo-cyclonedx --version 0.5.9
  exit 0
fi

if [ "$purpose" = test ]; then in_background set_up_nextest; fi
in_background scripts/setup-guest-kernel.sh
# Guests of two architectures in which an ssh server runs.
if [ "$purpose" = test ]; then in_background scripts/setup-guest-system.sh; fi
# Guests that are processes.
case $purpose in
  test) in_background scripts/setup-uml.sh ;;
  # The first report shows User Mode Linux beside emulation. Without it there is one all the same.
  study) scripts/setup-uml.sh || echo "setup: no kernel of User Mode Linux: VMs are QEMU's alone" ;;
esac
# A vCenter for tests and comparisons.
case $purpose in test | bench) in_background scripts/setup-vsphere.sh ;; esac
# A fake Proxmox VE for the same.
case $purpose in test | bench) in_background scripts/setup-proxmox.sh ;; esac
# A generator of mail to compare with.
if [ "$purpose" = bench ]; then scripts/setup-smtp-source.sh; scripts/setup-go-tpc.sh; fi
all_done
