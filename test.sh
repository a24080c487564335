#!/usr/bin/env bash
# Tests: formatting, unit, integration and documentation tests.
#   ./test.sh         what every change is proved with
#   ./test.sh --all   also lints, long statistics, probes in real time, a virtual machine with a real MMC stack, fuzzing
# As root on Debian it installs the programs that the tests talk to. A test that lacks something says what it leaves out and why;
# the last line counts them. With NANDSCOPE_TOOLS=needed a missing program is a failure.
set -euo pipefail
cd "$(dirname "$0")"
all=
case "${1-}" in
--all) all=1 ;;
'') ;;
*)
  echo "usage: ./test.sh [--all]" >&2
  exit 2
  ;;
esac
mkdir -p target
# The programs that tests talk to.
install() {
  packages="fio flashbench f3 dosfstools exfatprogs e2fsprogs fdisk libnbd-bin qemu-utils fuse3 mtools parted f2fs-tools btrfs-progs xfsprogs chromium postgresql g++"
  # Slurm, for a sweep as a job array.
  [ -z "$all" ] || packages="$packages munge slurmctld slurmd slurm-client libxml2-utils"
  dpkg -s $packages >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq $packages; } >target/apt.log 2>&1 ||
    echo "some Debian packages could not be installed (target/apt.log); their tests say what they leave out"
}
NANDSCOPE_SKIPPED=$PWD/target/skipped.txt
export NANDSCOPE_SKIPPED
: >"$NANDSCOPE_SKIPPED"
# What other tests need.
prepare() {
  # What reads our tables, runs our sweeps and builds the Python package, in a place of its own.
  if [ ! -e target/venv/ready ]; then
    rm -rf target/venv
    { python3 -m venv target/venv && target/venv/bin/pip install -q numpy pandas pyarrow duckdb dask distributed pytest mypy "maturin>=1.5,<2" && touch target/venv/ready; } >target/venv.log 2>&1 ||
      echo "Python packages could not be installed (target/venv.log); their tests say what they leave out"
  fi
  # Prometheus' checker of its text format, without its server.
  [ -x target/promtool ] || ! command -v apt-get >/dev/null || (
    rm -rf target/deb && mkdir target/deb && cd target/deb && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb . && mv usr/bin/promtool .. && rm -rf ../deb
  ) >target/promtool.log 2>&1 || echo "promtool could not be unpacked (target/promtool.log); the tests' own parser reads that form"
  # A guest from Debian's own packages, unpacked under target/ (nothing is installed).
  tests/vm/setup.sh >target/vm-setup.log 2>&1
}
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
# While the tests are compiled; that itself needs a C compiler.
before() {
  [ -n "$installed" ] || install
  [ -z "$all" ] || prepare
}
installed=1
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  installed=
  command -v cc >/dev/null || { install && installed=1; }
fi
before &
preparing=$!
# The `mod` lines of experiments come out of a build script, which `cargo fmt` does not follow.
cargo fmt --all --check -- crates/measure/src/experiment/*.rs crates/infer/src/infer/*.rs
cargo test --workspace --quiet --no-run
prepared=0
wait "$preparing" || prepared=$?
status=0
vm=
# Starts these tests, which print to that file, and waits until they are compiled. $! is their process.
background() {
  ${3-} cargo test --workspace --quiet --no-fail-fast $(printf -- '--test %s ' $1) >"$2" 2>&1 &
  until [ -s "$2" ] || ! kill -0 $! 2>/dev/null; do sleep 0.2; done
}
if [ -n "$all" ]; then
  [ ! -e target/venv/ready ] || PATH=$PWD/target/venv/bin:$PATH
  # The guest mostly waits, so it runs beside the other tests.
  if [ "$prepared" = 0 ]; then
    NANDSCOPE_VM=1 cargo test --quiet --test vm >target/vm-test.log 2>&1 &
    vm=$!
  else
    echo "skipped: the MMC tests in a virtual machine: $(tail -n 1 target/vm-setup.log)" | tee -a "$NANDSCOPE_SKIPPED"
  fi
else
  export NANDSCOPE_SHORT=1
  echo "skipped: a virtual machine with a real MMC stack, fuzzing: ./test.sh --all runs them" >>"$NANDSCOPE_SKIPPED"
fi
export NANDSCOPE_VM=0
# Served cards keep their own time and killed commands wait for disks: these run beside all that computes, and go before it.
waiting="serve blockdev"
background "$waiting" target/waiting.log
beside=$!
if [ -n "$all" ]; then
  nice cargo clippy --workspace --all-targets --quiet -- -D warnings || status=$?
fi
# Half of all computing, beside the rest of it: where one test is the last of its kind, the other core has something to do.
long="calibration today_calibration"
background "$long" target/long.log nice
longest=$!
computing=
for file in tests/*.rs crates/*/tests/*.rs; do
  name=$(basename "$file" .rs)
  # Tables in columns are behind a feature, and come later.
  case " $waiting $long parquet " in *" $name "*) ;; *) computing="$computing --test $name" ;; esac
done
nice cargo test --workspace --quiet --no-fail-fast --lib --bins --examples $computing || status=$?
nice cargo test --workspace --quiet --no-fail-fast --doc || status=$?
if [ -n "$all" ] && [ -e target/venv/ready ]; then
  # The optional feature; with the features of the whole workspace, so that only it is compiled anew.
  NANDSCOPE=$PWD/target/debug/nandscope nice cargo test --quiet --workspace --features nandscope-survey/parquet --test parquet || status=$?
fi
if [ -n "$all" ]; then
  # The least Rust that Cargo.toml names, where it can be had; clippy knows by that line which of the standard library is newer.
  least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  installed() { rustup toolchain list 2>/dev/null | grep -o "^$least\(\.[0-9]*\)\?-[^ ]*" | head -n 1 || true; }
  has=$(installed)
  if [ -z "$has" ]; then
    timeout 300 rustup toolchain install "$least" --profile minimal >target/least.log 2>&1 || true
    has=$(installed)
  fi
  if [ -n "$has" ]; then
    nice rustup run "$has" cargo check --quiet --target-dir target/least || status=$?
  else
    echo "skipped: a build with Rust $least: rustup toolchain install $least" | tee -a "$NANDSCOPE_SKIPPED"
  fi
fi
if [ -n "$all" ]; then
  # Every parser of what comes from outside, coverage-guided, 5 s each. libFuzzer is C++.
  if command -v c++ >/dev/null; then
    fuzz/run.sh 5 || status=$?
  elif [ "${NANDSCOPE_TOOLS-}" = needed ]; then
    echo "fuzzing: there is no C++ compiler, and NANDSCOPE_TOOLS=needed"
    status=1
  else
    echo "skipped: fuzzing: there is no C++ compiler for libFuzzer" | tee -a "$NANDSCOPE_SKIPPED"
  fi
fi
wait "$longest" || status=$?
cat target/long.log
wait "$beside" || status=$?
cat target/waiting.log
if [ -n "$vm" ]; then
  wait "$vm" || status=$?
  echo "the MMC tests in the virtual machine:"
  cat target/vm-test.log
fi
sort -u -o "$NANDSCOPE_SKIPPED" "$NANDSCOPE_SKIPPED"
if [ -s "$NANDSCOPE_SKIPPED" ]; then
  echo
  cat "$NANDSCOPE_SKIPPED"
fi
result=passed
[ "$status" = 0 ] || result="FAILED (exit $status)"
echo "tests $result; $(wc -l <"$NANDSCOPE_SKIPPED") left out"
exit "$status"
