#!/bin/bash
# Prepares what the VM test needs in target/vm: QEMU, a stock Debian kernel, its modules, the virtual MMC host, an initramfs.
# Usage: tests/vm/setup.sh            Debian 12 on amd64. Downloads about 150 MB once; run again, it does nothing.
#
# Packages are unpacked under target/vm and not installed, so that nothing on this machine is replaced and no root is needed.
# Only a C compiler, make and xz must be on the machine; they are installed when they are missing and this runs as root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
vm=${VM_DIR:-${CARGO_TARGET_DIR:-$here/../../target}/vm}
mkdir -p "$vm"/{debs,unpacked,log}
vm=$(cd "$vm" && pwd)

say() { echo "vm setup: $*"; }
die() { echo "vm setup: $*" >&2; exit 1; }

[ "$(uname -m)" = x86_64 ] || die "the guest is an amd64 machine and its module is built here: needs an amd64 host, this is $(uname -m)"
command -v apt-get >/dev/null || die "packages come from Debian by apt-get, which is not here"

# The apt lists may be missing on a fresh machine.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p'; }
if [ -z "$(candidate qemu-system-x86)" ] || [ "$(candidate qemu-system-x86)" = "(none)" ]; then
    [ "$(id -u)" = 0 ] || die "apt knows no qemu-system-x86; run apt-get update as root"
    apt-get -qq update || die "apt-get update failed: no network?"
fi

tools=()
command -v gcc >/dev/null || tools+=(gcc libc6-dev)
command -v make >/dev/null || tools+=(make)
command -v xz >/dev/null || tools+=(xz-utils)
if [ ${#tools[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] || die "install first: ${tools[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${tools[@]}" >"$vm/log/apt.log" 2>&1 || die "cannot install ${tools[*]}, see $vm/log/apt.log"
fi

# Which kernel: the one the metapackage names today, or the one that is here already.
if [ -s "$vm/release" ]; then
    release=$(cat "$vm/release")
else
    release=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: linux-image-\([0-9][^ ]*\)$/\1/p' | head -1)
    [ -n "$release" ] || die "apt names no kernel for linux-image-amd64"
fi
abi=${release%-amd64}
series=$(echo "$abi" | sed 's/^\([0-9]*\.[0-9]*\)\..*/\1/')

# What is missing here to run these programs, with everything they depend on. Simulated: nothing is installed or removed.
programs=(qemu-system-x86 seabios busybox-static cpio kmod dosfstools libelf1)
missing=$(apt-get -s install --no-install-recommends "${programs[@]}" 2>"$vm/log/apt.log" | sed -n 's/^Inst \([^ ]*\) .*/\1/p') ||
    die "apt cannot resolve ${programs[*]}, see $vm/log/apt.log"
want="$missing linux-image-$release linux-headers-$release linux-headers-$abi-common linux-kbuild-$series"
for p in $want; do
    [ -e "$vm/unpacked/$p" ] && continue
    say "fetching $p"
    (cd "$vm/debs" && rm -f "$p"_*.deb && apt-get -qq download "$p") >"$vm/log/apt.log" 2>&1 || die "cannot download $p, see $vm/log/apt.log"
    case $p in linux-*) into=$vm/kernel ;; *) into=$vm/root ;; esac
    dpkg -x "$vm/debs/$p"_*.deb "$into"
    rm -f "$vm/debs/$p"_*.deb
    touch "$vm/unpacked/$p"
done
echo "$release" >"$vm/release"

# An uncompressed kernel starts by PVH and saves some six seconds of xz in an emulated processor.
if [ ! -s "$vm/vmlinux" ]; then
    image=$vm/kernel/boot/vmlinuz-$release
    offset=$(LC_ALL=C grep -abom1 $'\xfd7zXZ' "$image" | head -1 | cut -d: -f1)
    [ -n "$offset" ] || die "no xz stream in $image"
    tail -c +$((offset + 1)) "$image" | xz -dc --single-stream >"$vm/vmlinux.new" 2>/dev/null || [ -s "$vm/vmlinux.new" ]
    mv "$vm/vmlinux.new" "$vm/vmlinux"
fi

# The virtual MMC host, when its source or the kernel has changed.
stamp=$(cat "$here"/vmmc/* "$vm/release" | sha256sum | cut -c1-16)
if [ "$(cat "$vm/vmmc.stamp" 2>/dev/null)" != "$stamp" ]; then
    headers=$vm/kernel/usr/src/linux-headers-$release
    sed -i "s,^include .*/linux-headers-$abi-common/,include $vm/kernel/usr/src/linux-headers-$abi-common/," "$headers/Makefile"
    rm -rf "$vm/vmmc" && cp -r "$here/vmmc" "$vm/vmmc"
    LD_LIBRARY_PATH="$vm/root/usr/lib/x86_64-linux-gnu" nice make -s -C "$headers" M="$vm/vmmc" modules >"$vm/log/vmmc.log" 2>&1 ||
        die "vmmc.ko does not build, see $vm/log/vmmc.log"
    echo "$stamp" >"$vm/vmmc.stamp"
    rm -f "$vm/initramfs.stamp"
fi

stamp=$(cat "$here"/{initramfs.sh,init} "$vm/release" | sha256sum | cut -c1-16)
if [ "$(cat "$vm/initramfs.stamp" 2>/dev/null)" != "$stamp" ]; then
    VM_DIR=$vm "$here/initramfs.sh"
    echo "$stamp" >"$vm/initramfs.stamp"
fi
say "ready in $vm, kernel $release"
