#!/usr/bin/env bash
# Measures what the conclusions of the five papers are held beside, in guests of User Mode Linux and under TCG, and writes docs/papers.md.
# It takes hours, as root for namespaces and control groups. What is interrupted goes on when it is called again; a study that fails is
# named at the end and does not keep the others from being measured. PAPERS="disk cpu-uml" measures these alone.
# $OUT (out/papers) keeps the whole runs; docs/papers gets what the document is made of.
set -uo pipefail
cd "$(dirname "$0")/.."
virtbench=${VIRTBENCH:-target/release/virtbench}
out=${OUT:-out/papers}
kept=docs/papers
[ -x "$virtbench" ] || { echo "$virtbench is missing: make whole, or VIRTBENCH=FILE" >&2; exit 4; }
mkdir -p "$out"
failed=

# study NAME ARGUMENTS...: measures it, or what is missing of it, and keeps its results.
study() {
  local name=$1 code resume=()
  shift
  [[ -z ${PAPERS:-} || " $PAPERS " == *" $name "* ]] || return 0
  [ -z "$(find "$out/$name" -name run.json -print -quit 2> /dev/null)" ] || resume=(--resume)
  echo "== $name: virtbench study $*"
  "$virtbench" study "$@" --out "$out/$name" "${resume[@]}"
  code=$?
  [ "$code" != 130 ] || exit 130
  # 5: there are results, but some operations failed.
  [[ $code == 0 || $code == 5 ]] || failed="$failed $name($code)"
  keep "$name"
}

# What is read of a run: of one that was measured under several systems, each system's. Where this machine keeps files is no part of it.
keep() {
  local run file
  find "$out/$1" -name run.json -printf '%h\n' 2> /dev/null | while read -r run; do
    [ -s "$run/results.jsonl" ] || continue
    mkdir -p "$kept/${run#"$out"/}"
    for file in run.json results.jsonl; do
      sed -e "s|\"$virtbench\"|\"virtbench\"|g" -e "s|$PWD|.|g" -e "s|$HOME/|~/|g" "$run/$file" > "$kept/${run#"$out"/}/$file"
    done
  done
}

# Two hypervisors for management operations, between which guests can move. They end with this script.
operations() {
  local place uuid=8f07fe28-753f-2729-d76d-bdbd892f949a socket
  place=$(mkdir -p "$out/libvirt" && cd "$out/libvirt" && pwd)
  scripts/libvirtd.sh "$place/one" 24000 & hypervisors=$!
  scripts/libvirtd.sh "$place/two" 24100 "$uuid" "$place/one/pool" & hypervisors="$hypervisors $!"
  for socket in one two; do
    timeout 60 sh -c "until [ -S '$place/$socket/run/libvirt/libvirt-sock' ]; do sleep 0.2; done" || { failed="$failed operations(4)"; return; }
  done
  at() { echo "libvirt+qemu:///system?socket=$place/$1/run/libvirt/libvirt-sock"; }
  study operations-tcg operations --platform "$(at one)" --destination "$(at two)&pool=shared" --vms 4,12 --rate 30/min --time 3m --accelerator tcg
  # shellcheck disable=SC2086 # several
  kill -KILL $hypervisors
  hypervisors=
}
hypervisors=
# shellcheck disable=SC2086 # several, or none
trap 'kill -KILL $hypervisors 2> /dev/null || :' EXIT

together() { study "$1-$2" neighbours --workload "$3" --vms 1,2,4 --vcpus 1 --memory 192MiB --time 3s --repetitions 3 --accelerator "$2" "${@:4}"; }

# Each platform's predictions are of the set that was held out from them.
declare -A cases=([uml]=fresh [tcg]=held-out)
study disk native-vs-vm --grid quick --ramp 200ms --time 600ms
study adapters adapters --grid quick --ramp 200ms --time 600ms
for platform in uml tcg; do
  together cpu "$platform" cpu:threads=1,kernel=200ms
  together memory "$platform" memory:threads=1,array=16MiB
  together files "$platform" bonnie:size=64MiB --size 256MiB
  study "database-$platform" oltp --warehouses 1 --users 4 --repetitions 3 --time 8s --search-time 2s --ramp 2s --network tap --accelerator "$platform"
  study "desktops-$platform" desktops --day small --desktops 1,2,4 --time 30s --environment vm --accelerator "$platform"
  study "deviation-$platform" deviation --workload load:size=4k,read=50,random=100,outstanding=8 --size 16MiB --memory 128MiB --vcpus 1 \
    --systems none,VirtualFence,VirtualFence:30ms --repetitions 3 --time 4s --accelerator "$platform"
  study "tiles-$platform" tiles --tile tile-small --repetitions 1 --accelerator "$platform"
  study "predictions-$platform" predictions --cases "docs/data/${cases[$platform]}.toml" --accelerator "$platform" --vcpus 1 --trials 1
done
[[ -n ${PAPERS:-} && " $PAPERS " != *" operations-tcg "* ]] || operations

"$virtbench" papers "$kept" --out docs/papers.md || exit
[ -z "$failed" ] || { echo "not measured:$failed" >&2; exit 1; }
