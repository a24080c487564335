#!/usr/bin/env bash
# Builds every package and tries each where there is no toolchain: as root on Debian, 10 minutes of two cores.
#   packaging/try.sh [DIRECTORY]
# DIRECTORY keeps the fresh Debian between runs [default: target/try]. Needs what packaging/static.sh needs, debootstrap and
# qemu-user-static; the container is built where buildah is and its base images can be had, else that is said.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${1-target/try}
built=${CARGO_TARGET_DIR-target}
mkdir -p "$dir"
most=13000000
fail() {
  echo "packaging/try.sh: $*" >&2
  exit 1
}
# A program tried with what stands before it, on two simulated cards.
tried() {
  [ "$("$@" probe sim:toshiba-emmc --read-only --only erase_block)" = 4194304 ] || fail "$*: the erase block"
  local status=0 said
  said=$("$@" check sim:fake-wrap-32gb -q) || status=$?
  [ $status = 6 ] && grep -q '^COUNTERFEIT' <<<"$said" || fail "$*: the counterfeit (exit code $status)"
}
# And a survey, which is a database: its directory as the program sees it.
kept() {
  local at=$1
  shift
  "$@" probe sim:toshiba-emmc --read-only -q --json="$at/report.json" >/dev/null
  "$@" survey --dir "$at/survey" add "$at/report.json" >/dev/null
  "$@" survey --dir "$at/survey" list | grep -q toshiba-emmc || fail "$*: the survey"
}
small() {
  [ "$(stat -c %s "$1")" -le $most ] || fail "$1 is larger than $most bytes"
  echo "$1: $(stat -c %s "$1") bytes"
}

for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
  packaging/static.sh $target >/dev/null
  program=$built/$target/release/nandscope
  small "$program"
  readelf -d "$program" | grep -q NEEDED && fail "$program needs libraries"
  run=("$program")
  [ $target != aarch64-unknown-linux-musl ] || run=(qemu-aarch64-static "$program")
  tried "${run[@]}"
  rm -rf "$dir/kept" && mkdir "$dir/kept"
  kept "$dir/kept" "${run[@]}"
  echo "$program: tried without libraries"
done
packages=("$(packaging/deb.sh "" "$dir")")
mv "${packages[0]}" "$dir/with-libc.deb"
packages=("$dir/with-libc.deb" "$(packaging/deb.sh "$built/x86_64-unknown-linux-musl/release/nandscope" "$dir")")
arm=$(packaging/deb.sh "$built/aarch64-unknown-linux-musl/release/nandscope" "$dir")
small "$built/release/nandscope"
for package in "${packages[@]}" "$arm"; do small "$package"; done
[ "$(dpkg-deb -f "$arm" Architecture)" = arm64 ] || fail "$arm is not for arm64"

root=$dir/debian
[ -e "$root/ready" ] || {
  rm -rf "$root"
  debootstrap --variant=minbase trixie "$root" >"$dir/debootstrap.log" 2>&1 || fail "no fresh Debian: $(tail -n 1 "$dir/debootstrap.log")"
  touch "$root/ready"
}
for tool in cc gcc cargo rustc; do
  [ -z "$(chroot "$root" sh -c "command -v $tool" || true)" ] || fail "$root has $tool"
done
for package in "${packages[@]}"; do
  cp "$package" "$root/tmp/nandscope.deb"
  chroot "$root" dpkg -i /tmp/nandscope.deb >/dev/null
  tried chroot "$root" nandscope
  rm -rf "$root/tmp/kept" && mkdir "$root/tmp/kept"
  kept /tmp/kept chroot "$root" nandscope
  # A minimal Debian leaves manual pages out when it installs.
  chroot "$root" nandscope man probe | grep -q 'SH EXAMPLES' || fail "$package: manual pages"
  chroot "$root" dpkg -r nandscope >/dev/null
  [ ! -e "$root/usr/bin/nandscope" ] || fail "$package is not removed"
  echo "$package: installed, tried and removed in a fresh Debian without a toolchain"
done

if command -v buildah >/dev/null; then
  # NANDSCOPE_BUILDAH: options of this host, such as a volume with its certificates.
  # shellcheck disable=SC2086
  if buildah bud --isolation chroot ${NANDSCOPE_BUILDAH-} -t nandscope -f packaging/Containerfile . >"$dir/container.log" 2>&1; then
    container=$(buildah from nandscope)
    tried buildah run --isolation chroot "$container" -- nandscope
    buildah rm "$container" >/dev/null
    echo "container: built and tried"
  else
    echo "skipped: the container: $(tail -n 1 "$dir/container.log")"
  fi
else
  echo "skipped: the container: there is no buildah"
fi
