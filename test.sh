#!/usr/bin/env bash
# All tests: formatting, lints, unit, integration and documentation tests. Tests that need root or a tool say what they skip.
set -euo pipefail
cd "$(dirname "$0")"
cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
cargo test --workspace --quiet
