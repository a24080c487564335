#!/usr/bin/env bash
# A program that needs no libraries: target/TARGET/release/nandscope for x86_64-unknown-linux-musl, or the TARGET that is given.
#   packaging/static.sh [x86_64-unknown-linux-musl | aarch64-unknown-linux-musl]
# Needs musl-tools (Debian); for aarch64 a C compiler named aarch64-linux-musl-gcc, or Debian's gcc-aarch64-linux-gnu.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1-x86_64-unknown-linux-musl}
rustup target list --installed | grep -qx "$target" || rustup target add "$target"
if [ "$target" = x86_64-unknown-linux-musl ] && ! command -v musl-gcc >/dev/null; then
  echo "packaging/static.sh: there is no musl-gcc; install it with: apt install musl-tools" >&2
  exit 1
fi
if [ "$target" = aarch64-unknown-linux-musl ] && ! command -v aarch64-linux-musl-gcc >/dev/null; then
  cc=aarch64-linux-gnu-gcc
  command -v $cc >/dev/null || {
    echo "packaging/static.sh: there is no $cc; install it with: apt install gcc-aarch64-linux-gnu" >&2
    exit 1
  }
  # Its headers are those of another C library: what musl has under no such name must not be asked for.
  export CC_aarch64_unknown_linux_musl=$cc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=$cc
  export CFLAGS_aarch64_unknown_linux_musl="-U_FORTIFY_SOURCE -mno-outline-atomics"
  export LIBSQLITE3_FLAGS="-DSQLITE_DISABLE_LFS"
fi
# Built once, and a twentieth faster in one piece than in those that a change needs not compile again.
CARGO_INCREMENTAL=0 cargo build --release --locked --quiet --target "$target"
ls -l "${CARGO_TARGET_DIR-target}/$target/release/nandscope"
