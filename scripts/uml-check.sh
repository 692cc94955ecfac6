#!/usr/bin/env bash
# Measures a guest of User Mode Linux by somebody else's tools, fio and iperf3, beside virtbench's own agent, in turn, and prints the
# medians and their ratio. As root: `appliance build` needs apt and mmdebstrap (`scripts/setup.sh appliances`), the guest its kernel
# (`make uml-kernel` or `make uml`). This host needs iperf3, ssh and jq. ROUNDS (5), SECONDS_EACH (5) and SIZE (256MiB) change how much,
# VALUES=FILE keeps every value.
set -euo pipefail
cd "$(dirname "$0")/.."
virtbench=${VIRTBENCH:-target/release/virtbench}
rounds=${ROUNDS:-5} seconds=${SECONDS_EACH:-5} size=${SIZE:-256MiB}
goal=5

for tool in iperf3 jq ssh ssh-keygen; do
  command -v "$tool" > /dev/null || { echo "$tool is missing: apt install iperf3 jq openssh-client" >&2; exit 4; }
done
[ -x "$virtbench" ] || { echo "$virtbench is missing: make whole, or VIRTBENCH=FILE" >&2; exit 4; }

kept=${VIRTBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/virtbench}/uml-check
mkdir -p "$kept"
[ -f "$kept/key" ] || ssh-keygen -q -t ed25519 -N '' -C uml-check -f "$kept/key"
# The root is built once: it has the key in it.
sed "s|@KEY@|$(cat "$kept/key.pub")|" scripts/uml-check.toml > "$kept/recipe.toml"
"$virtbench" appliance build "$kept/recipe.toml" > /dev/null

scratch=$(mktemp -d)
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
  address=$(jq -er '.ports["5201"]' "$scratch/answer" | cut -d: -f1)
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
}

# What was measured: NAME TOOL VALUE, a line each.
note() { echo "$1 $2 $3" >> "$scratch/values"; }

# iperf3 as our path is measured: one connection, blocks of 128 KiB.
network_by_others() {
  for way in to from; do
    reverse=$([ $way = from ] && echo --reverse || true)
    # shellcheck disable=SC2086
    $enter iperf3 --client "$address" --time 1 --omit 1 --length 128K --json $reverse > "$scratch/iperf3.json"
    note "tcp-$way-guest" theirs "$(jq -e '.end.sum_received.bits_per_second / 8e6' "$scratch/iperf3.json")"
  done
}

network_by_agent() {
  $enter "$virtbench" appliance path "$agent" --json > "$scratch/path.json"
  for way in to from; do
    note "tcp-$way-guest" ours "$(jq -e ".${way}_bytes_per_s / 1e6" "$scratch/path.json")"
  done
}

# disk NAME BLOCK RANDOM DEPTH
disk_by_agent() {
  $enter "$virtbench" load --environment "ssh://guest/srv/data/ours?config=$scratch/ssh" --size "$size" --bs "$2" --random "$3" \
    --read 100 --outstanding "$4" --ramp 1s --time "${seconds}s" --engine io_uring --json > "$scratch/load.json"
  note "$1" ours "$(jq -e '.total.iops' "$scratch/load.json")"
}

disk_by_others() {
  kind=$([ "$3" = 100 ] && echo randread || echo read)
  $enter ssh -F "$scratch/ssh" guest "fio --name=check --filename=/srv/data/theirs --size=$(echo "$size" | sed 's/iB$//') --bs=$2 \
    --rw=$kind --iodepth=$4 --ioengine=io_uring --direct=1 --ramp_time=1 --runtime=$seconds --time_based --randrepeat=0 \
    --output-format=json" < /dev/null > "$scratch/fio.json"
  note "$1" theirs "$(jq -e '.jobs[0].read.iops' "$scratch/fio.json")"
}

begin
for round in $(seq "$rounds"); do
  echo "round $round of $rounds" >&2
  # Who is first changes from round to round.
  first=agent second=others
  [ $((round % 2)) = 1 ] || { first=others second=agent; }
  for who in $first $second; do network_by_$who; done
  for load in "4k-random-depth-1 4k 100 1" "4k-random-depth-4 4k 100 4" "64k-sequential 64k 0 1"; do
    for who in $first $second; do
      # shellcheck disable=SC2086
      disk_by_$who $load
    done
  done
done
end

[ -z "${VALUES:-}" ] || cp "$scratch/values" "$VALUES"
awk -v goal="$goal" '
  { values[$1, $2] = values[$1, $2] " " $3; if (!($1 in seen)) names[++count] = $1; seen[$1] = 1 }
  # The median of numbers in a text; also their smallest and largest.
  function median(text,   list, size, i, j, held) {
    size = split(text, list, " ")
    for (i = 2; i <= size; i++)
      for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) { held = list[j]; list[j] = list[j - 1]; list[j - 1] = held }
    smallest = list[1]; largest = list[size]
    return size % 2 ? list[(size + 1) / 2] : (list[size / 2] + list[size / 2 + 1]) / 2
  }
  # Of each round, ours to theirs: what disturbs the host disturbs both.
  function ratios(name,   ours, theirs, size, i, text) {
    size = split(values[name, "ours"], ours, " "); split(values[name, "theirs"], theirs, " ")
    for (i = 1; i <= size; i++) text = text " " ours[i] / theirs[i]
    return text
  }
  END {
    printf "%-18s %27s %27s  %s\n", "", "fio or iperf3", "our agent", "ratio of a round"
    for (i = 1; i <= count; i++) {
      name = names[i]
      one = median(values[name, "theirs"]); theirs = sprintf("%.0f (%.0f to %.0f)", one, smallest, largest)
      one = median(values[name, "ours"]); ours = sprintf("%.0f (%.0f to %.0f)", one, smallest, largest)
      one = median(ratios(name)); ratio = sprintf("%.3f (%.3f to %.3f)", one, smallest, largest)
      far = one < 1 - goal / 100 || one > 1 + goal / 100
      printf "%-18s %27s %27s  %s%s\n", name, theirs, ours, ratio, far ? ", beyond " goal " %" : ""
    }
    print "I/Os a second, and MB/s of TCP: medians, in brackets the smallest and largest"
  }' "$scratch/values"
