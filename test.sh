#!/usr/bin/env bash
# All tests: formatting, lints, unit, integration and documentation tests. As root on Debian it installs the programs that the
# tests talk to; a test that lacks something says in one line what it skipped and why.
set -euo pipefail
cd "$(dirname "$0")"
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  packages="fio flashbench dosfstools exfatprogs e2fsprogs fdisk libnbd-bin qemu-utils fuse3"
  dpkg -s $packages >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq $packages; } >/dev/null 2>&1 ||
    echo "some Debian packages could not be installed; their tests say what they skip"
fi
cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
cargo test --workspace --quiet
