#!/bin/bash
# Fuzzes every parser of what comes from outside, coverage-guided by libFuzzer, with the stable toolchain and a C++ compiler.
# Usage: fuzz/run.sh [SECONDS] [TARGET...]         5 s a target, all targets
#
# Inputs to begin with are made by tests/fuzz.rs; what is found on the way is kept in target/fuzz. An input that fails is named and
# makes this script fail; the same input again: target/fuzz/bin/TARGET FILE
set -euo pipefail
cd "$(dirname "$0")"
target=$(realpath -m "${CARGO_TARGET_DIR:-../target}")
export CARGO_TARGET_DIR=$target SECONDS_EACH=${1:-5}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^path = "fuzz_targets\/\(.*\)\.rs"/\1/p' Cargo.toml)
mkdir -p "$target"/fuzz/{bin,log}
# Versions and profiles of the program itself, so that what is built for it serves here, too.
cp ../Cargo.lock Cargo.lock
awk '/^\[/ { on = /^\[profile\./ } on' ../Cargo.toml >"$target/fuzz/profiles.toml"
RUSTC_WRAPPER=$PWD/rustc.sh cargo build --quiet --bins --config "$target/fuzz/profiles.toml"
NANDSCOPE_SEEDS=$target/fuzz/corpus cargo test --quiet --manifest-path ../Cargo.toml --test fuzz seeds_for_the_fuzzer >/dev/null

one() {
    t=$1 here=$CARGO_TARGET_DIR
    cp "$here/debug/$t" "$here/fuzz/bin/"
    mkdir -p "$here/fuzz/corpus/$t"
    case $t in disk | tree) length=200000 ;; report) length=20000 ;; *) length=8000 ;; esac
    if "$here/fuzz/bin/$t" -max_total_time="$SECONDS_EACH" -timeout=20 -rss_limit_mb=2048 -max_len=$length -print_final_stats=1 \
        -artifact_prefix="$here/fuzz/$t-" "$here/fuzz/corpus/$t" >"$here/fuzz/log/$t" 2>&1; then
        sed -n "s/^stat::number_of_executed_units: *\(.*\)/fuzz $t: \1 inputs, nothing wrong/p" "$here/fuzz/log/$t"
    else
        echo "fuzz $t: failed"
        tail -n 30 "$here/fuzz/log/$t"
        return 1
    fi
}
export -f one
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'one {}'
