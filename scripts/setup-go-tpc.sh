#!/usr/bin/env bash
# Builds go-tpc into virtbench's cache, to compare with. Running it again does nothing.
#
# Its last release knows MySQL's protocol alone; a later commit has PostgreSQL too. Where the module proxy does not give that
# one away, git does.
set -euo pipefail
export PATH="$PATH:/usr/local/go/bin" LC_ALL=C

cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}
place=$cache/go-tpc
commit=682637f4f9959bffd2f9e59ecad600f53fc9daf8
fail() { echo "setup-go-tpc: $*" >&2; exit 1; }

if [[ -x $place/go-tpc && -f $place/made-of && $(<"$place/made-of") == "$commit" ]]; then exit 0; fi
# scripts/setup-vsphere.sh fetches Go where the system has none.
go=$(command -v go || true)
[[ -n $go ]] || go=$cache/vsphere/go/bin/go
[[ -x $go ]] || fail "there is no Go: run scripts/setup-vsphere.sh, or install it from https://go.dev/dl"
mkdir -p "$place"
module=github.com/pingcap/go-tpc/cmd/go-tpc
for version in "$commit" latest; do
  for proxy in "" direct; do
    echo "setup-go-tpc: building go-tpc ($version)"
    if GOBIN=$place ${proxy:+env GOPROXY=$proxy} timeout 600 "$go" install "$module@$version" >"$place/log" 2>&1; then
      echo "$version" | sed "s/latest/release/" >"$place/made-of"
      exit 0
    fi
  done
done
fail "go-tpc cannot be built: $(tail -n 1 "$place/log")"
