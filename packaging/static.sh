#!/usr/bin/env bash
# A program that needs no libraries: target/TARGET/release/nandscope for x86_64-unknown-linux-musl, or the TARGET that is given.
#   packaging/static.sh [x86_64-unknown-linux-musl | aarch64-unknown-linux-musl]
# Needs Debian's musl-tools; for aarch64 gcc-aarch64-linux-gnu and libc6-dev-arm64-cross, whose compiler builds the C parts and links them.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1-x86_64-unknown-linux-musl}
needs() {
  command -v "$1" >/dev/null || {
    echo "packaging/static.sh: there is no $1; install it with: apt install $2" >&2
    exit 1
  }
}
rustup target list --installed | grep -qx "$target" || rustup target add "$target"
case $target in
x86_64-*) needs musl-gcc musl-tools ;;
aarch64-*)
  needs aarch64-linux-gnu-gcc "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
  export CC_aarch64_unknown_linux_musl=${CC_aarch64_unknown_linux_musl-aarch64-linux-gnu-gcc}
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=${CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER-aarch64-linux-gnu-gcc}
  # What the headers of glibc would check at run time musl has no functions for.
  export CFLAGS_aarch64_unknown_linux_musl=${CFLAGS_aarch64_unknown_linux_musl--U_FORTIFY_SOURCE}
  ;;
esac
cargo build --release --locked --quiet --target "$target"
ls -l "${CARGO_TARGET_DIR-target}/$target/release/nandscope"
