#!/usr/bin/env bash
# Builds the Debian package into target/debian. DEB_PROFILE is the profile of Cargo: release, or dev for a quick look at the package.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${DEB_PROFILE:-release}
folder=target/${profile/#dev/debug}
# What dates files within the package: the same source gives the same bytes.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH

cargo build --profile "$profile" --locked -p virtbench
virtbench=$folder/virtbench

stage=out/package
rm -rf "$stage"
mkdir -p "$stage/man"
"$virtbench" man "$stage/man"
for shell in bash zsh fish; do "$virtbench" completions "$shell" >"$stage/virtbench.$shell"; done
# The unit starts the command where the package puts it.
sed -e 's|/usr/local/bin/virtbench|/usr/bin/virtbench|' \
  -e '/^#   useradd/d; /^#   install -m644/d' 'contrib/virtbench-fence@.service' >"$stage/virtbench-fence@.service"
printf 'virtbench (%s-1) unstable; urgency=low\n\n  * See CHANGELOG.md of this version, in this folder.\n\n -- virtbench developers <virtbench@localhost>  %s\n' \
  "$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" >"$stage/changelog"
gzip -9n <CHANGELOG.md >"$stage/changelog.gz"

rm -f target/debian/virtbench_*.deb
cargo deb --no-build --strip --profile "$profile" --locked -p virtbench --output target/debian/ >/dev/null
ls target/debian/virtbench_*.deb
