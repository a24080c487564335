#!/usr/bin/env bash
# All tests: formatting, lints, unit, integration and documentation tests. As root on Debian it installs the programs that the
# tests talk to; a test that lacks something says in one line what it skipped and why.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p target
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  packages="fio flashbench dosfstools exfatprogs e2fsprogs fdisk libnbd-bin qemu-utils fuse3 mtools parted f2fs-tools btrfs-progs chromium postgresql g++"
  dpkg -s $packages >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq $packages; } >/dev/null 2>&1 ||
    echo "some Debian packages could not be installed; their tests say what they skip"
fi
cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
cargo test --workspace --quiet --no-run
# A guest with a real MMC stack, from Debian's own packages, unpacked under target/ (nothing is installed). It mostly waits, so it
# runs beside the other tests, which say that they leave it out.
if tests/vm/setup.sh >target/vm-setup.log 2>&1; then
  NANDSCOPE_VM=1 cargo test --quiet --test vm >target/vm-test.log 2>&1 &
  vm=$!
else
  vm=
  echo "no virtual machine for the MMC tests: $(tail -n 1 target/vm-setup.log)"
fi
status=0
NANDSCOPE_VM=0 cargo test --workspace --quiet --no-fail-fast || status=$?
# Every parser of what comes from outside, coverage-guided, 5 s each. libFuzzer is C++.
if command -v c++ >/dev/null; then
  fuzz/run.sh 5 || status=$?
else
  echo "skipped: fuzzing: there is no C++ compiler for libFuzzer"
fi
if [ -n "$vm" ]; then
  wait "$vm" || status=$?
  echo "the MMC tests in the virtual machine:"
  cat target/vm-test.log
fi
exit "$status"
