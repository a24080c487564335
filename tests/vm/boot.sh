#!/bin/bash
# Boots the test guest. Usage: tests/vm/boot.sh SHARE SCRIPT [more QEMU arguments]
#
# SHARE is a directory of the host that the guest sees as /share, SCRIPT a shell script in it; without SCRIPT ("") a shell on
# the console. The guest has no network. QEMU emulates the processor (TCG): it runs everywhere, in any virtual machine.
# VM_SECONDS bounds the run, 900 s by default.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
vm=${VM_DIR:-${CARGO_TARGET_DIR:-$here/../../target}/vm}
vm=$(cd "$vm" && pwd)
share=$(cd "$1" && pwd)
script=$2
shift 2
export PATH=$vm/root/usr/bin:$PATH
export LD_LIBRARY_PATH=$vm/root/usr/lib/x86_64-linux-gnu:$vm/root/lib/x86_64-linux-gnu
data=()
for d in "$vm/root" ""; do
    for s in qemu seabios; do if [ -d "$d/usr/share/$s" ]; then data+=(-L "$d/usr/share/$s"); fi; done
done
# The guest's clock counts instructions (two nanoseconds each) and jumps over idle time: what is timed in the guest does not
# depend on how busy the host is, and waiting costs nothing. That needs one processor. tsc=reliable keeps that clock.
exec timeout --foreground -k 5 "${VM_SECONDS:-900}" qemu-system-x86_64 \
    -nodefaults -no-user-config -display none -no-reboot "${data[@]}" \
    -machine q35 -accel tcg -icount shift=1,sleep=off -cpu max -smp 1 -m "${VM_MEMORY:-1024}" \
    -chardev stdio,id=con,signal=off -serial chardev:con \
    -fsdev local,id=share,path="$share",security_model=none -device virtio-9p-pci,fsdev=share,mount_tag=share \
    -kernel "$vm/vmlinux" -initrd "$vm/initramfs.cpio.gz" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable ${script:+script=$script}" "$@"
