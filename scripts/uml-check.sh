#!/usr/bin/env bash
# Measures a guest of User Mode Linux by somebody else's tools, fio, iperf3 and nuttcp, beside virtbench's own agent, in turn, and prints
# the medians and their ratio. As root: `appliance build` needs apt and mmdebstrap (`scripts/setup.sh appliances`), the guest its kernel
# (`make uml-kernel` or `make uml`). This host needs nuttcp, ssh and jq. What is measured is an argument: disk, network, or both.
# ROUNDS (20), SECONDS_EACH (3) and SIZE (256MiB) change how much, VALUES=FILE keeps every value, behind those that are there already.
set -euo pipefail
cd "$(dirname "$0")/.."
virtbench=${VIRTBENCH:-target/release/virtbench}
what=${1:-both}
rounds=${ROUNDS:-20} seconds=${SECONDS_EACH:-3} size=${SIZE:-256MiB}
goal=5

case $what in disk | network | both) ;; *) echo "uml-check: '$what' is neither disk nor network nor both" >&2; exit 2 ;; esac
for tool in jq nuttcp ssh ssh-keygen; do
  command -v "$tool" > /dev/null || { echo "$tool is missing: apt install jq nuttcp openssh-client" >&2; exit 4; }
done
[ -x "$virtbench" ] || { echo "$virtbench is missing: make whole, or VIRTBENCH=FILE" >&2; exit 4; }

cache=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}
kept=$cache/uml-check
mkdir -p "$kept"
[ "$what" = disk ] || scripts/setup-iperf3.sh
[ -f "$kept/key" ] || ssh-keygen -q -t ed25519 -N '' -C uml-check -f "$kept/key"
# The root is built once: it has the key in it.
sed "s|@KEY@|$(cat "$kept/key.pub")|" scripts/uml-check.toml > "$kept/recipe.toml"
"$virtbench" appliance build "$kept/recipe.toml" > /dev/null

scratch=$(mktemp -d)
values=${VALUES:-$scratch/values}
guest=
end() {
  # It powers off in good order.
  [ -z "$guest" ] || { kill "$guest" 2> /dev/null && wait "$guest"; } || true
  guest=
}
trap 'end; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# Boots the guest and leaves in $enter how to get into its network.
begin() {
  rm -f "$scratch/answer"
  mkfifo "$scratch/said"
  "$virtbench" appliance run "$kept/recipe.toml" --accelerator uml --json > "$scratch/said" &
  guest=$!
  # Its one line is there once everything is ready.
  head -n 1 < "$scratch/said" > "$scratch/answer"
  rm "$scratch/said"
  [ -s "$scratch/answer" ] || { echo "uml-check: the guest did not start" >&2; exit 6; }
  enter=$(jq -er .enter "$scratch/answer")
  agent=$(jq -er .agent "$scratch/answer")
  address=$(jq -er '.ports["5000"]' "$scratch/answer" | cut -d: -f1)
  cat > "$scratch/ssh" << END
Host guest
  HostName $address
  User root
  IdentityFile $kept/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
END
  [ "$what" = disk ] || in_guest "tar -C /srv/data -x && /srv/data/iperf3/iperf3 --server --daemon" < <(tar -C "$cache" -c iperf3)
}

# A command of the guest's.
in_guest() { $enter ssh -F "$scratch/ssh" guest "$1"; }

# What was measured: NAME TOOL VALUE, a line each.
note() { echo "$1 $2 $3" >> "$values"; }

# One connection, blocks of 128 KiB, as the agent's path.
network_by_iperf3() {
  for way in to from; do
    reverse=$([ "$way" = from ] && echo --reverse || true)
    # shellcheck disable=SC2086
    $enter "$cache/iperf3/iperf3" --client "$address" --time "$seconds" --omit 1 --length 128K --json $reverse > "$scratch/iperf3.json"
    note "tcp-$way-guest" iperf3 "$(jq -e '.end.sum_received.bits_per_second / 8e6' "$scratch/iperf3.json")"
  done
}

network_by_nuttcp() {
  for way in to from; do
    reverse=$([ "$way" = from ] && echo -r || true)
    # shellcheck disable=SC2086
    $enter nuttcp -T "$seconds" -l 131072 -fparse $reverse "$address" > "$scratch/nuttcp"
    note "tcp-$way-guest" nuttcp "$(sed -n 's/.*rate_Mbps=\([0-9.]*\).*/\1/p' "$scratch/nuttcp" | awk '{ print $1 / 8 }')"
  done
}

network_by_agent() {
  $enter "$virtbench" appliance path "$agent" --time "${seconds}s" --json > "$scratch/path.json"
  for way in to from; do
    note "tcp-$way-guest" agent "$(jq -e ".${way}_bytes_per_s / 1e6" "$scratch/path.json")"
  done
}

# disk NAME BLOCK RANDOM DEPTH
disk_by_agent() {
  $enter "$virtbench" load --environment "ssh://guest/srv/data/ours?config=$scratch/ssh" --size "$size" --bs "$2" --random "$3" \
    --read 100 --outstanding "$4" --ramp 1s --time "${seconds}s" --engine io_uring --json > "$scratch/load.json"
  note "$1" agent "$(jq -e '.total.iops' "$scratch/load.json")"
}

# Each I/O is handed over alone, which is fio's default, or all that are due at once, as virtbench does.
disk_by_fio() { disk_by_fio_with "$1" "$2" "$3" "$4" fio ""; }
disk_by_fio_batch() { disk_by_fio_with "$1" "$2" "$3" "$4" fio_batch "--iodepth_batch_submit=$4 --iodepth_batch_complete_max=$4"; }
disk_by_fio_with() {
  local way
  way=$([ "$3" = 100 ] && echo randread || echo read)
  in_guest "fio --name=check --filename=/srv/data/theirs --size=$(echo "$size" | sed 's/iB$//') --bs=$2 --rw=$way --iodepth=$4 $6 \
    --ioengine=io_uring --direct=1 --unlink=1 --ramp_time=1 --runtime=$seconds --time_based --randrepeat=0 --output-format=json" \
    < /dev/null > "$scratch/fio.json"
  note "$1" "$5" "$(jq -e '.jobs[0].read.iops' "$scratch/fio.json")"
}

# in_turn ROUND WHAT ARGUMENTS... -- TOOLS...: who is first changes from round to round.
in_turn() {
  local turn=$1 kind=$2 arguments=() tools tool
  shift 2
  while [ "$1" != -- ]; do arguments+=("$1"); shift; done
  shift
  for _ in "$@"; do
    tools=("$@")
    tool=${tools[$((turn % $#))]}
    turn=$((turn + 1))
    "${kind}_by_$tool" "${arguments[@]}"
  done
}

begin
for round in $(seq "$rounds"); do
  echo "round $round of $rounds" >&2
  if [ "$what" != disk ]; then in_turn "$round" network -- agent iperf3 nuttcp; fi
  if [ "$what" != network ]; then
    in_turn "$round" disk 4k-random-depth-1 4k 100 1 -- agent fio
    in_turn "$round" disk 4k-random-depth-4 4k 100 4 -- agent fio fio_batch
    in_turn "$round" disk 64k-sequential 64k 0 1 -- agent fio
  fi
done
end

awk -v goal="$goal" '
  {
    values[$1, $2] = values[$1, $2] " " $3
    if (!($1 in seen)) names[++count] = $1
    seen[$1] = 1
    if ($2 != "agent" && !(($1, $2) in beside)) { beside[$1, $2] = 1; others[$1] = others[$1] " " $2 }
  }
  # The median of numbers in a text; also their smallest and largest, and the interval in which it lies with 95 % confidence, whatever
  # the distribution: between the values of ranks that the binomial distribution gives.
  function median(text,   list, size, i, j, held, below, part) {
    size = split(text, list, " ")
    for (i = 2; i <= size; i++)
      for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) { held = list[j]; list[j] = list[j - 1]; list[j - 1] = held }
    smallest = list[1]; largest = list[size]
    part = 0.5 ^ size; below = part
    for (i = 0; below <= 0.025 && i < size / 2; ) { i++; part *= (size - i + 1) / i; below += part }
    low = i > 0 ? sprintf("%.3f", list[i]) : "?"; high = i > 0 ? sprintf("%.3f", list[size + 1 - i]) : "?"
    return size % 2 ? list[(size + 1) / 2] : (list[size / 2] + list[size / 2 + 1]) / 2
  }
  # Of each round, ours to theirs: what disturbs the host disturbs both.
  function ratios(name, other,   ours, theirs, size, i, text) {
    size = split(values[name, "agent"], ours, " "); split(values[name, other], theirs, " ")
    for (i = 1; i <= size; i++) text = text " " ours[i] / theirs[i]
    return text
  }
  END {
    printf "%-18s %-9s %24s %24s  %s\n", "", "", "it", "our agent", "agent / it: median, its 95 % interval, of single rounds"
    for (i = 1; i <= count; i++) {
      name = names[i]
      tools = split(others[name], list_of, " ")
      for (tool = 1; tool <= tools; tool++) {
        other = list_of[tool]
        one = median(values[name, other]); theirs = sprintf("%.0f (%.0f to %.0f)", one, smallest, largest)
        one = median(values[name, "agent"]); ours = sprintf("%.0f (%.0f to %.0f)", one, smallest, largest)
        one = median(ratios(name, other))
        ratio = sprintf("%.3f, %s to %s, %.2f to %.2f", one, low, high, smallest, largest)
        far = one < 1 - goal / 100 || one > 1 + goal / 100
        printf "%-18s %-9s %24s %24s  %s%s\n", name, other, theirs, ours, ratio, far ? ", beyond " goal " %" : ""
      }
    }
    print "I/Os a second, and MB/s of TCP: medians, in brackets the smallest and largest"
  }' "$values"
