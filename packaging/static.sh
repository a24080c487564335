#!/usr/bin/env bash
# A program that needs no libraries: target/TARGET/release/nandscope for x86_64-unknown-linux-musl, or the TARGET that is given.
#   packaging/static.sh [x86_64-unknown-linux-musl | aarch64-unknown-linux-musl]
# Needs musl-tools (Debian), for aarch64 a C compiler named aarch64-linux-musl-gcc or CC_aarch64_unknown_linux_musl.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1-x86_64-unknown-linux-musl}
rustup target list --installed | grep -qx "$target" || rustup target add "$target"
if [ "$target" = x86_64-unknown-linux-musl ] && ! command -v musl-gcc >/dev/null; then
  echo "packaging/static.sh: there is no musl-gcc; install it with: apt install musl-tools" >&2
  exit 1
fi
cargo build --release --locked --quiet --target "$target"
ls -l "${CARGO_TARGET_DIR-target}/$target/release/nandscope"
