#!/bin/bash
# Packs the guest's root: busybox, /init and the kernel modules it loads. Called by setup.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
vm=${VM_DIR:?}
release=$(cat "$vm/release")
# Programs come from the unpacked packages, or from this machine when they were there already.
export PATH=$vm/root/bin:$vm/root/sbin:$vm/root/usr/bin:$vm/root/usr/sbin:$PATH:/usr/sbin:/sbin
export LD_LIBRARY_PATH=$vm/root/usr/lib/x86_64-linux-gnu:$vm/root/lib/x86_64-linux-gnu
kmod() { (exec -a "$1" "$(type -P kmod)" "${@:2}"); }

# Loaded by /init, in this order; what they need comes along.
modules="virtio_pci virtio_console 9pnet_virtio 9p nls_cp437 nls_ascii nls_utf8 nls_iso8859-1 vfat exfat loop mmc_core mmc_block"
# Loaded by the tests.
more="exfat sdhci-pci xhci-pci usb-storage sd_mod"

kmod depmod -b "$vm/kernel" "$release"
stage=$(mktemp -d "$vm/stage.XXXXXX")
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage"/{bin,etc,dev,lib/modules/"$release"}
install -m755 "$(type -P busybox)" "$stage/bin/busybox"
install -m755 "$here/init" "$stage/init"
printf '%s\n' $modules >"$stage/etc/modules.load"
for m in $modules $more; do
    kmod modprobe -d "$vm/kernel" -S "$release" --show-depends "$m" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | sort -u | while read -r f; do
    install -D -m644 "$f" "$stage${f#"$vm/kernel"}"
done
install -D -m644 "$vm/vmmc/vmmc.ko" "$stage/lib/modules/$release/extra/vmmc.ko"
for f in modules.builtin modules.order modules.builtin.modinfo; do
    if [ -e "$vm/kernel/lib/modules/$release/$f" ]; then cp "$vm/kernel/lib/modules/$release/$f" "$stage/lib/modules/$release/"; fi
done
kmod depmod -b "$stage" "$release"
# A FAT maker for the mounted card; its libraries are those of any Debian program.
mkfs=$(type -P mkfs.fat)
install -D -m755 "$mkfs" "$stage/usr/sbin/mkfs.fat"
ldd "$mkfs" | grep -o '/[^ ]*' | while read -r l; do install -D "$l" "$stage$l"; done
(cd "$stage" && find . | cpio -o -H newc --quiet) | gzip -1 >"$vm/initramfs.cpio.gz"
