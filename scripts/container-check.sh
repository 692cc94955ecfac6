#!/usr/bin/env bash
# Builds contrib/Containerfile from the package of scripts/deb.sh with buildah, and uses the command in it. The base is CONTAINER_BASE, or
# a bare root of Debian 13 that mmdebstrap makes, so that no registry is needed. Needs root, and the network for packages.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/bare-root.sh
require "buildah mmdebstrap" buildah mmdebstrap
package=$(find target/debian -maxdepth 1 -name 'virtbench_*.deb' 2>/dev/null | head -1) || true
[ -n "$package" ] || { echo "container-check: there is no package: make deb" >&2; exit 4; }

store=$(mktemp -d "$roots/container-XXXXXX")
# What this machine's other containers are made of stays apart.
build() { buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs "$@"; }
cleanup() { build rm --all >/dev/null 2>&1 || true; rm -rf --one-file-system "$store"; }
trap cleanup EXIT
# Without a container's own network and devices: whatever machine builds it may have neither.
export BUILDAH_ISOLATION=chroot

base=${CONTAINER_BASE:-}
if [ -z "$base" ]; then
  tar=$(bare_root_tar trixie)
  base=localhost/virtbench-base
  empty=$(build from scratch)
  build add --quiet "$empty" "$tar" / >/dev/null
  build commit --quiet --rm "$empty" "$base" >/dev/null
fi
echo "container-check: building on $base"
build bud --quiet --build-arg "BASE=$base" --tag localhost/virtbench --file contrib/Containerfile target/debian >/dev/null

inside() { build run "$container" -- "$@"; }
# Containers have no io_uring unless somebody lets them.
container=$(build from --pull-never localhost/virtbench)
user=$(inside id -un)
echo "container-check: as $user: $(inside virtbench --version)"
[ "$user" = visitor ] || { echo "container-check: the command runs as $user" >&2; exit 1; }
inside virtbench load --target t.img --size 16MiB --ramp 0s --time 500ms --engine psync --outstanding 1
container=$(build from --pull-never --security-opt seccomp=unconfined localhost/virtbench)
inside virtbench load --target t.img --size 16MiB --ramp 0s --time 500ms
inside virtbench doctor
build inspect --type image --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' localhost/virtbench
echo "container-check: $package holds in a container"
