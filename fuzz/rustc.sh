#!/bin/sh
# Stands before rustc (RUSTC_WRAPPER): the crates of this program get libFuzzer's counters, all others are built as always. The
# options are stable ones; only the sanitizers of cargo-fuzz need a nightly toolchain.
rustc=$1
shift
case " $* " in
*" --crate-name nandscope "* | *" --crate-name nandscope_"*)
    exec "$rustc" "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
esac
exec "$rustc" "$@"
