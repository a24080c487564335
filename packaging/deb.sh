#!/usr/bin/env bash
# A Debian package: program, manual pages, completions, an example of a udev rule.
#   packaging/deb.sh [PROGRAM] [DIRECTORY]
# PROGRAM is built where none is given; packaging/static.sh makes one that needs no libraries. Prints the package's path.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1-}
out=${2-target}
if [ -z "$program" ]; then
  cargo build --release --locked --quiet
  program=${CARGO_TARGET_DIR-target}/release/nandscope
fi
machine=$(od -An -j18 -N2 -tu2 "$program" | tr -d ' ')
case $machine in
62) arch=amd64 ;;
183) arch=arm64 ;;
*)
  echo "packaging/deb.sh: $program is for no machine that is known here (ELF machine $machine)" >&2
  exit 1
  ;;
esac
# Of another machine's program qemu-user writes the pages.
run=("$program")
case $arch:$(uname -m) in
arm64:x86_64) run=(qemu-aarch64-static "$program") ;;
amd64:aarch64) run=(qemu-x86_64-static "$program") ;;
esac
command -v "${run[0]}" >/dev/null || {
  echo "packaging/deb.sh: there is no ${run[0]}; install it with: apt install qemu-user-static" >&2
  exit 1
}
version=$("${run[@]}" --version | cut -d' ' -f2)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
share=$root/usr/share
doc=$share/doc/nandscope
mkdir -p "$root/usr/bin" "$root/DEBIAN" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/vendor-completions" \
  "$share/fish/vendor_completions.d" "$doc/examples"
strip -o "$root/usr/bin/nandscope" "$program" 2>/dev/null || cp "$program" "$root/usr/bin/nandscope"
chmod 755 "$root/usr/bin/nandscope"
"${run[@]}" man --dir "$share/man/man1"
gzip -9n "$share"/man/man1/*.1
"${run[@]}" completions bash >"$share/bash-completion/completions/nandscope"
"${run[@]}" completions zsh >"$share/zsh/vendor-completions/_nandscope"
"${run[@]}" completions fish >"$share/fish/vendor_completions.d/nandscope.fish"
cp packaging/60-nandscope.rules "$doc/examples/"
cp README.md CITATION.cff "$doc/"
cat LICENSE-MIT LICENSE-APACHE >"$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
# The newest symbol of the C library that is asked for; a static program asks for none.
libc=$(strings -a "$root/usr/bin/nandscope" | grep -oE '^GLIBC_[0-9.]+$' | cut -d_ -f2 | sort -V | tail -n 1 || true)
{
  echo "Package: nandscope"
  echo "Version: $version"
  echo "Architecture: $arch"
  echo "Maintainer: The nandscope authors <nandscope@localhost>"
  echo "Section: utils"
  echo "Priority: optional"
  [ -z "$libc" ] || echo "Depends: libc6 (>= $libc), libgcc-s1"
  echo "Suggests: fuse3"
  echo "Installed-Size: $(du -sk "$root/usr" | cut -f1)"
  echo "Description: times flash cards and says what is inside them"
  echo " Measures SD, microSD, eMMC, USB and CF cards: genuine or counterfeit, erase block,"
  echo " page, open erase blocks, caches, stalls, with a confidence for each answer."
} >"$root/DEBIAN/control"
mkdir -p "$out"
package=$out/nandscope_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
