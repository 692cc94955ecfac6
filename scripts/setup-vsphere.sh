#!/usr/bin/env bash
# Builds the vCenter for tests (tests/vsphere, around govmomi's simulator) into virtbench's cache. Running it again does
# nothing unless its source has changed.
#
# Go is the system's if it is new enough. Otherwise Go's own toolchain is fetched through the module proxy into the cache,
# where nothing else sees it.
set -euo pipefail
export PATH="$PATH:/usr/local/go/bin" LC_ALL=C
cd "$(dirname "$0")/../tests/vsphere"

cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}/vsphere
wanted=1.25.0
# Its zip of the module proxy, by digest.
fetched=golang.org/toolchain/@v/v0.0.1-go1.25.0.linux-amd64.zip
digest=891083c63e4d7a5020bdaa1911a9c5a1a966b993d9d3c1137d1727be04435e02

fail() { echo "setup-vsphere: $*" >&2; exit 1; }
command -v flock >/dev/null || fail "flock is missing: apt install util-linux"
mkdir -p "$cache"
exec 9>"$cache/.setup.lock"
flock -w 600 9 || fail "another set-up has been running for ten minutes"

# What it was built of.
made_of=$(cat go.mod go.sum ./*.go ../../scripts/vsphere-module.sh | sha256sum | cut -d' ' -f1)
if [[ -x $cache/virtbench-vsphere && -f $cache/made-of && $(<"$cache/made-of") == "$made_of" ]]; then exit 0; fi

new_enough() {
  local have
  have=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  [[ $(printf '%s\n' "$wanted" "${have#go}" | sort -V | head -n 1) == "$wanted" ]]
}

go=$(command -v go || true)
if [[ -z $go ]] || ! new_enough "$go"; then
  go=$cache/go/bin/go
  if ! new_enough "$go"; then
    [[ $(uname -m) == x86_64 ]] || fail "Go $wanted or newer is missing: install it from https://go.dev/dl"
    for program in curl unzip; do command -v "$program" >/dev/null || fail "$program is missing: apt install $program"; done
    echo "setup-vsphere: fetching Go $wanted"
    work=$(mktemp -d "$cache/go.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    proxy=${GOPROXY:-https://proxy.golang.org}
    curl -fsSL -o "$work/go.zip" "${proxy%%[,|]*}/$fetched" ||
      fail "Go $wanted or newer is missing, and cannot be fetched from ${proxy%%[,|]*}: install it from https://go.dev/dl"
    echo "$digest  $work/go.zip" | sha256sum --quiet -c - || fail "what was fetched as Go $wanted is not that"
    unzip -q "$work/go.zip" -d "$work"
    chmod -R a+rX,u+w "$work"/golang.org/*
    find "$work"/golang.org -path '*/bin/*' -o -path '*/pkg/tool/*' | xargs chmod a+x
    rm -rf "$cache/go"
    mv "$work"/golang.org/toolchain@* "$cache/go"
    trap - EXIT
    rm -rf "$work"
  fi
fi
echo "setup-vsphere: building the vCenter for tests with $(GOTOOLCHAIN=local "$go" env GOVERSION)"
GOTOOLCHAIN=local "$go" mod download || fail "its modules cannot be fetched from the module proxy (GOPROXY)"
rm -rf "$cache"/changed.* # of a set-up that was killed
changed=$(mktemp -d "$cache/changed.XXXXXX")
trap 'rm -rf "$changed"' EXIT
modfile=$(../../scripts/vsphere-module.sh "$go" "$changed") || fail "govmomi's simulator cannot be changed"
GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0 "$go" build -trimpath -modfile "$modfile" -o "$cache/virtbench-vsphere.new" . ||
  fail "it cannot be built; its modules come from the module proxy (GOPROXY)"
mv "$cache/virtbench-vsphere.new" "$cache/virtbench-vsphere"
echo "$made_of" > "$cache/made-of"
