#!/bin/bash
# Boots the guest with the program that NANDSCOPE names and runs guest/all.sh there. Results: target/vm/share/out, one set of
# files an item. Called by tests/vm.rs; needs what setup.sh prepared.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
vm=${VM_DIR:-${CARGO_TARGET_DIR:-$here/../../target}/vm}
vm=$(cd "$vm" && pwd)

program=${NANDSCOPE:?the program to run in the guest}
share=$vm/share
rm -rf "$share" && mkdir -p "$share"/{out,lib}
cp "$here"/guest/*.sh "$share/"
strip -o "$share/nandscope" "$program"
# Its libraries are those of this machine, as those of mkfs.fat in the guest's root are.
ldd "$program" | grep -o '/[^ ]*' | xargs -I{} cp {} "$share/lib/"
rm -f "$vm/sd.img"
truncate -s 32M "$vm/sd.img"
# The SD card is served inside the processor and takes no time of the guest; a disk that waited for the host would make its
# clock, which jumps to the next timer when there is nothing to do, run ahead: so the USB disk is all zeros.
"$here/boot.sh" "$share" all.sh \
    -device sdhci-pci,sd-spec-version=2 -drive if=none,id=sd0,file="$vm/sd.img",format=raw,cache=writeback \
    -device sd-card,spec_version=3,drive=sd0 \
    -device qemu-xhci -drive if=none,id=u0,driver=null-co,size=64M,read-zeroes=on \
    -device usb-storage,drive=u0,removable=on </dev/null
