#!/usr/bin/env bash
# Runs every fuzz target for a while (seconds in $1, a minute unless said otherwise). What crashes is
# kept in fuzz/artifacts; `cargo +nightly fuzz run TARGET FILE` repeats it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
examples=crates/pure/formats/tests/examples
rustup toolchain list | grep '^nightly' >/dev/null || rustup toolchain install nightly --profile minimal
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz

for target in $(cargo +nightly fuzz list); do
  mkdir -p "fuzz/corpus/$target"
  case $target in
    icf) cp "$examples"/*.icf "fuzz/corpus/$target/" ;;
    fio) cp "$examples"/*.fio "fuzz/corpus/$target/" ;;
    diskspd) cp "$examples"/*.cmd "fuzz/corpus/$target/" ;;
    filebench) cp "$examples"/*.f "fuzz/corpus/$target/" ;;
    loadfile) cp "$examples"/*.load "fuzz/corpus/$target/" ;;
    json) cp "$examples"/*.json "fuzz/corpus/$target/" ;;
    profile) cp docs/data/*.toml "fuzz/corpus/$target/" ;;
    table) cp docs/data/*.csv "fuzz/corpus/$target/" ;;
    trace) cp "$examples"/*.csv "$examples"/*.iolog "fuzz/corpus/$target/" ;;
  esac
  echo "fuzz: $target for $seconds s"
  cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=1024 \
    -verbosity=0 -print_final_stats=1
done
