#!/usr/bin/env bash
# Builds tarballs for other distributions into target/dist: the static command with what compares storage, its agent, manual pages,
# completions, licences; checksums; and a list of what it is made of (SBOM, CycloneDX). DIST_TARGETS names kinds of machines [x86_64
# aarch64]. The other kind's programs are linked by the distribution's compiler for it; nothing in C is compiled in.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
# The same bytes wherever it is built: no path of this machine in them.
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/virtbench --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
build=${CARGO_TARGET_DIR:-target}
out=$build/dist
here=$(uname -m)
rm -rf "$out"
mkdir -p "$out"

targets=${DIST_TARGETS:-x86_64 aarch64}
for machine in $targets; do
  target=$machine-unknown-linux-musl
  if [ "$machine" != "$here" ]; then
    linker=$machine-linux-gnu-gcc
    command -v "$linker" >/dev/null || { echo "dist: there is no $linker: apt install gcc-${machine/_/-}-linux-gnu" >&2; exit 4; }
    export "CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')_LINKER=$linker"
  fi
  cargo build --profile study --locked --target "$target" --no-default-features -p virtbench -p virtbench-agent
done

# What the command says of itself is the same on each kind of machine.
words=$build/dist-words
rm -rf "$words"
mkdir -p "$words/man"
command=$build/$here-unknown-linux-musl/study/virtbench
if [[ " $targets " == *" $here "* ]]; then
  "$command" man "$words/man"
  for shell in bash zsh fish; do "$command" completions "$shell" >"$words/virtbench.$shell"; done
else
  echo "dist: no manual pages and completions: there is no build for this machine ($here)" >&2
fi

for machine in $targets; do
  built=$build/$machine-unknown-linux-musl/study
  name=virtbench-$version-$machine-linux
  folder=$out/$name
  mkdir -p "$folder"
  cp -r "$built/virtbench" "$built/virtbench-agent" LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$words"/* "$folder"
  # Whatever the umask was.
  find "$folder" -type d -exec chmod 755 {} + -o -perm -100 -exec chmod 755 {} + -o -exec chmod 644 {} +
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$out" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
  rm -rf "$folder"
done
rm -rf "$words"

if cargo cyclonedx --version >/dev/null 2>&1; then
  sbom=$out/virtbench-$version.sbom.json
  cargo cyclonedx --format json --no-default-features --manifest-path crates/edge/cli/Cargo.toml --override-filename virtbench.sbom
  # Paths of this machine are not what it is made of.
  sed "s|file://$PWD|file:///virtbench|g" crates/edge/cli/virtbench.sbom.json >"$sbom"
  find crates -name virtbench.sbom.json -delete
else
  echo "dist: no SBOM: there is no cargo-cyclonedx (cargo install cargo-cyclonedx)" >&2
  exit 4
fi
(cd "$out" && sha256sum -- *.tar.gz *.json >SHA256SUMS)
cat "$out/SHA256SUMS"
