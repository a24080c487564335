#!/bin/bash
# Builds a static nandscope, boots the guest with it and runs guest/all.sh there. Results: target/vm/share/out, one set of
# files an item. Called by tests/vm.rs; needs what setup.sh prepared.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
vm=${VM_DIR:-${CARGO_TARGET_DIR:-$here/../../target}/vm}
vm=$(cd "$vm" && pwd)

# musl where it is installed with its C compiler, else glibc; static either way, so that the guest needs no libraries. A target
# directory of its own: the one above may be locked by the cargo that runs this.
triple=x86_64-unknown-linux-gnu
if command -v musl-gcc >/dev/null && rustup target list --installed 2>/dev/null | grep -qx x86_64-unknown-linux-musl; then
    triple=x86_64-unknown-linux-musl
fi
(cd "$here/../.." && CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_STRIP=symbols RUSTFLAGS="-C target-feature=+crt-static" \
    "${CARGO:-cargo}" build --quiet --locked --bin nandscope --target "$triple" --target-dir "$vm/cargo")

share=$vm/share
rm -rf "$share" && mkdir -p "$share/out"
cp "$here"/guest/*.sh "$vm/cargo/$triple/debug/nandscope" "$share/"
rm -f "$vm/sd.img"
truncate -s 32M "$vm/sd.img"
# The SD card is served inside the processor and takes no time of the guest; a disk that waited for the host would make its
# clock, which jumps to the next timer when there is nothing to do, run ahead: so the USB disk is all zeros.
"$here/boot.sh" "$share" all.sh \
    -device sdhci-pci,sd-spec-version=2 -drive if=none,id=sd0,file="$vm/sd.img",format=raw,cache=writeback \
    -device sd-card,spec_version=3,drive=sd0 \
    -device qemu-xhci -drive if=none,id=u0,driver=null-co,size=64M,read-zeroes=on \
    -device usb-storage,drive=u0,removable=on </dev/null
