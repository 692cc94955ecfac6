#!/usr/bin/env bash
# Copies govmomi's module into FOLDER, changed in one place, and prints the path of a go.mod that uses the copy: a filter's mark
# that a list has changed is set without the filter's lock. With it, ModifyListView and WaitForUpdatesEx take the locks of list and
# filter in opposite orders and can wait for each other for ever (govmomi pull request 4109, in no release up to 0.56).
#
# Usage: vsphere-module.sh GO FOLDER, from tests/vsphere
set -euo pipefail
go=$1 folder=$2
module=$(GOTOOLCHAIN=local GOFLAGS=-mod=readonly "$go" list -m -f '{{.Dir}}' github.com/vmware/govmomi)
cp -r "$module" "$folder/govmomi"
chmod -R u+w "$folder/govmomi"
filter=simulator/property_filter.go
sed -e 's|^\t"strings"$|&\n\t"sync/atomic"|' \
  -e 's|^\tsync bool$|\tsync atomic.Bool|' \
  -e 's|ctx.WithLock(f, func() { f.sync = true })|f.sync.Store(true)|' \
  -e 's|^\t\tif f.sync {$|\t\tif f.sync.Swap(false) {|' \
  -e '/^\t\t\tf.sync = false$/d' "$module/$filter" > "$folder/govmomi/$filter"
# Four lines are new; another version of the module wants another look.
[[ $(diff "$module/$filter" "$folder/govmomi/$filter" | grep -c '^>') == 4 ]] ||
  { echo "vsphere-module: $module/$filter is not what this was written for" >&2; exit 1; }
cp go.mod go.sum "$folder/"
echo "replace github.com/vmware/govmomi => $folder/govmomi" >> "$folder/go.mod"
echo "$folder/go.mod"
