#!/usr/bin/env bash
# Builds a tarball for other distributions into target/dist: the static command with what compares storage, its agent, manual pages,
# completions, licences; checksums; and a list of what it is made of (SBOM, CycloneDX). DIST_TARGETS names kinds of machines;
# for another kind than this one a linker is needed that makes its programs.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
# The same bytes wherever it is built: no path of this machine in them.
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/virtbench --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
build=${CARGO_TARGET_DIR:-target}
out=$build/dist
rm -rf "$out"
mkdir -p "$out"

for machine in ${DIST_TARGETS:-$(uname -m)}; do
  target=$machine-unknown-linux-musl
  cargo build --profile study --locked --target "$target" --no-default-features -p virtbench -p virtbench-agent
  name=virtbench-$version-$machine-linux
  folder=$out/$name
  mkdir -p "$folder"
  cp "$build/$target/study/virtbench" "$build/$target/study/virtbench-agent" LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$folder"
  if [ "$machine" = "$(uname -m)" ]; then
    "$folder/virtbench" man "$folder/man"
    for shell in bash zsh fish; do "$folder/virtbench" completions "$shell" >"$folder/virtbench.$shell"; done
  fi
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$out" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
  rm -rf "$folder"
done

if cargo cyclonedx --version >/dev/null 2>&1; then
  cargo cyclonedx --format json --no-default-features --manifest-path crates/edge/cli/Cargo.toml --override-filename virtbench.sbom
  mv crates/edge/cli/virtbench.sbom.json "$out/virtbench-$version.sbom.json"
  find crates -name virtbench.sbom.json -delete
else
  echo "dist: no SBOM: there is no cargo-cyclonedx (cargo install cargo-cyclonedx)" >&2
  exit 4
fi
(cd "$out" && sha256sum -- *.tar.gz *.json >SHA256SUMS)
cat "$out/SHA256SUMS"
