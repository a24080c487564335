#!/usr/bin/env bash
# All tests: formatting, lints, unit, integration and documentation tests. As root on Debian it installs the programs that the
# tests talk to; a test that lacks something says in one line what it skipped and why.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p target
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  packages="fio flashbench dosfstools exfatprogs e2fsprogs fdisk libnbd-bin qemu-utils fuse3 mtools parted f2fs-tools btrfs-progs chromium postgresql"
  dpkg -s $packages >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq $packages; } >/dev/null 2>&1 ||
    echo "some Debian packages could not be installed; their tests say what they skip"
fi
# A guest with a real MMC stack, from Debian's own packages, unpacked under target/ (nothing is installed).
if tests/vm/setup.sh >target/vm-setup.log 2>&1; then
  export NANDSCOPE_VM=1
else
  echo "no virtual machine for the MMC tests: $(tail -n 1 target/vm-setup.log)"
fi
cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
cargo test --workspace --quiet
