#!/usr/bin/env bash
# Holds `virtbench compare` against runs between which nothing changed. Twenty runs of one study are measured while this host is quiet and
# twenty while other programs load it, in turn. Then each two of a kind are compared, and each two quiet ones of which the second is made
# slower in its results; and sides of several runs. What other runs differ by is taken from a catalogue of all forty, as `virtbench history` keeps one.
# As root, for guests of User Mode Linux (`make uml`). It takes about half an hour and goes on when it is called again.
# RUNS (20) is how many of each kind, OUT (out/regressions) keeps the runs, and the table goes to docs/data/regressions.csv.
set -euo pipefail
cd "$(dirname "$0")/.."
virtbench=${VIRTBENCH:-target/release/virtbench}
runs=${RUNS:-20} out=${OUT:-out/regressions} table=${TABLE:-docs/data/regressions.csv}
for tool in "$virtbench" jq; do
  command -v "$tool" > /dev/null || { echo "$tool is missing: make whole, or VIRTBENCH=FILE; apt install jq" >&2; exit 4; }
done
mkdir -p "$out"

load=
end_load() {
  [ -z "$load" ] || { kill $load 2> /dev/null && wait $load 2> /dev/null; } || true
  load=
  rm -f "$out/written"
}
trap end_load EXIT
trap 'exit 130' INT TERM

# One processor of work, and a file that is written and flushed over and over.
begin_load() {
  timeout 600 bash -c 'while :; do :; done' &
  load=$!
  timeout 600 bash -c "while dd if=/dev/zero of='$out/written' bs=64k count=256 conv=fsync status=none; do :; done" &
  load="$load $!"
}

measure() {
  local resume=()
  [ ! -e "$out/$1/run.json" ] || resume=(--resume)
  "$virtbench" study native-vs-vm --grid scripts/regressions-check.toml --accelerator uml --repetitions 3 --ramp 300ms --time 1s \
    --out "$out/$1" "${resume[@]}" > /dev/null
}

for ((run = 1; run <= runs; run++)); do
  for kind in quiet loaded; do
    name=$kind/$(printf %02d "$run")
    [ ! -e "$out/$name/report.html" ] || continue
    echo "run $run of $runs, $kind"
    mkdir -p "$out/$kind"
    [ "$kind" = quiet ] || begin_load
    measure "$name"
    end_load
  done
done

# slowed FOLDER SHARE: the quiet runs with each rate at this share, and each response time longer by as much.
slowed() {
  local run name
  for ((run = 1; run <= runs; run++)); do
    name=$(printf %02d "$run")
    rm -rf "$out/$1/$name"
    mkdir -p "$out/$1"
    cp -r "$out/quiet/$name" "$out/$1/$name"
    jq -c --argjson share "$2" '.outcome |= (if . then (.total, .read, .write) |= (
             .iops *= $share | .bytes_per_second *= $share
             | .latency_ns |= (if . then map_values(. / $share | if . > 1000 then floor else . end) else . end)
           ) else . end)' "$out/quiet/$name/results.jsonl" > "$out/$1/$name/results.jsonl"
  done
}
slowed slower 0.9
slowed slowest 0.8

"$virtbench" history list "$out/quiet" --catalogue "$out/quiet.sqlite" > /dev/null
"$virtbench" history list "$out/quiet" "$out/loaded" --catalogue "$out/all.sqlite" > /dev/null

mkdir -p "$out/none"
"$virtbench" history list "$out/none" --catalogue "$out/none.sqlite" > /dev/null

# compare CATALOGUE BEFORE AFTER: leaves in $answer what the exit code says.
compare() {
  local code=0
  "$virtbench" compare "$out/$2" "$out/$3" --fail-on regression --catalogue "$out/$1.sqlite" > /dev/null 2>&1 || code=$?
  case $code in
    0) answer=passed ;;
    9) answer=regression ;;
    10) answer=incomparable ;;
    *) echo "compare $2 $3 ended with $code" >&2; exit 1 ;;
  esac
}

# pair WHAT CATALOGUE BEFORE AFTER: a line with the answer.
pair() {
  compare "$2" "$3" "$4"
  echo "$1,$2,$3,$4,$answer"
}

# side NAME FOLDER NUMBER...: a side of these runs of the folder.
side() {
  local name=$1 folder=$2 number=0 run
  shift 2
  mkdir -p "$out/sides/$name"
  for run in "$@"; do cp -r "$out/$folder/$run" "$out/sides/$name/$((++number))"; done
}

# sides WHAT SIZE DRAW AFTER: a line with the answer of two sides of so many runs each, drawn without replacement, the second of the folder
# AFTER.
sides() {
  local drawn
  mapfile -t drawn < <(shuf -e $(seq -f %02g "$runs") --random-source=<(yes "$3"))
  rm -rf "$out/sides"
  side before quiet "${drawn[@]:0:$2}"
  side after "$4" "${drawn[@]:$2:$2}"
  compare none sides/before sides/after
  echo "$1: $2 runs a side,none,draw-$3/before,$4,$answer"
}

{
  echo "what,catalogue,before,after,answer"
  for ((one = 1; one <= runs; one++)); do
    for ((other = one + 1; other <= runs; other++)); do
      before=$(printf %02d "$one") after=$(printf %02d "$other")
      for catalogue in quiet all none; do
        pair "quiet and quiet" "$catalogue" "quiet/$before" "quiet/$after"
        pair "quiet and a tenth slower" "$catalogue" "quiet/$before" "slower/$after"
      done
      for catalogue in all none; do pair "loaded and loaded" "$catalogue" "loaded/$before" "loaded/$after"; done
      pair "quiet and loaded" all "quiet/$before" "loaded/$after"
    done
  done
  for size in 2 4 8 10; do
    [ $((2 * size)) -le "$runs" ] || continue
    for ((draw = 1; draw <= 40; draw++)); do
      sides "quiet and quiet" "$size" "$draw" quiet
      sides "quiet and a tenth slower" "$size" "$draw" slower
      sides "quiet and a fifth slower" "$size" "$draw" slowest
    done
  done
} > "$table.new"
mv "$table.new" "$table"
rm -rf "$out/sides"

awk -F, 'NR > 1 { kind = $1 "; catalogue " $2; pairs[kind]++; if ($5 == "regression") worse[kind]++
                  if ($5 == "incomparable") cannot[kind]++ }
  END { for (kind in pairs) printf "%s: %d pairs, %.1f %% a regression, %.1f %% not comparable\n", kind, pairs[kind],
          100 * worse[kind] / pairs[kind], 100 * cannot[kind] / pairs[kind] }' "$table" | sort
