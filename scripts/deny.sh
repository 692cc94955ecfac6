#!/usr/bin/env bash
# Licences, sources and duplicates of the dependencies; known vulnerabilities where the advisory
# database can be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-deny >/dev/null || cargo install --locked cargo-deny --version 0.20.2
cargo deny check bans licenses sources
if ! cargo deny check advisories; then
  if cargo deny fetch db >/dev/null 2>&1; then exit 1; fi
  echo "advisories: unavailable: the advisory database cannot be reached from here"
fi
