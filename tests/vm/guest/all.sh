# Runs in the guest, from the shared directory: every item leaves NAME.out, NAME.err and NAME.rc in out/, for tests/vm.rs.
#
# Nothing that is timed may wait for the host, since the guest's clock runs ahead then: the program and what it prints are in
# the guest's memory, and the shared directory is used between the items only.
export XDG_STATE_HOME=/tmp/state RUST_BACKTRACE=1 COLUMNS=1000
mkdir -p out "$XDG_STATE_HOME"
cp nandscope /bin/nandscope
for l in lib/*; do
    [ -e "/lib/x86_64-linux-gnu/${l#lib/}" ] || cp "$l" /lib/x86_64-linux-gnu/
done

item() {
    name=$1
    shift
    read -r began _ </proc/uptime
    "$@" >/tmp/item.out 2>/tmp/item.err </dev/null
    code=$?
    read -r ended _ </proc/uptime
    cp /tmp/item.out "out/$name.out"
    cp /tmp/item.err "out/$name.err"
    echo $code >"out/$name.rc"
    echo "GUEST: $name from $began to $ended s, exit code $code"
}

wait_for() {
    i=0
    while [ ! -b "$1" ] && [ $i -lt 100 ]; do
        usleep 100000
        i=$((i + 1))
    done
    [ -b "$1" ] || echo "GUEST: $1 did not appear"
}

model() { echo "$2" >"/sys/module/vmmc/parameters/$1"; }

# What is on the card, by the kernel's normal way and without waiting for the model: sums of three parts, the middle one is
# the region that may be written.
sums() {
    echo 3 >/proc/sys/vm/drop_caches
    if [ -d /sys/module/vmmc ]; then
        model read_us 0
        model block_ns 0
    fi
    for part in "0 $2" "$2 $3" "$3 $4"; do
        set -- "$1" "$2" "$3" "$4" $part
        dd if="$1" bs=1M skip="$5" count=$(($6 - $5)) 2>/dev/null | md5sum
    done
    if [ -d /sys/module/vmmc ]; then
        model read_us 300
        model block_ns 25000
    fi
}

# --- the virtual MMC host: 128 MiB, AU 4 MiB, 1 ms more for a read across 4 MiB
modprobe vmmc size_mb=128 cross_us=1000
wait_for /dev/mmcblk0
cat /sys/block/mmcblk0/queue/max_sectors_kb >out/max_sectors_kb
item list nandscope list --json
item identify nandscope identify /dev/mmcblk0 --json - --show-serial
item probe nandscope probe /dev/mmcblk0 --quiet --time 60s --json -
# The same card with an erase block of 12 MiB, which it does not declare.
model erase_kb 12288
item probe-12mib nandscope probe /dev/mmcblk0 --quiet --time 60s --json -
# What the kernel does not show, the card is asked for; root only.
card=$(readlink -f /sys/block/mmcblk0/device)
for f in scr ssr; do mount --bind /dev/null "$card/$f"; done
item asked nandscope identify /dev/mmcblk0 --json -
chmod 755 /
echo nobody:x:65534:65534::/tmp:/bin/sh >/etc/passwd
chmod 644 /dev/mmcblk0
item not-allowed su nobody -s /bin/sh -c 'nandscope identify /dev/mmcblk0'
for f in scr ssr; do umount "$card/$f"; done
rmmod vmmc

# --- an eMMC: EXT_CSD from debugfs, then from the card; what it declares beside what is found
modprobe vmmc size_mb=4096 emmc=1 erase_kb=2048 cross_us=1000
wait_for /dev/mmcblk0
item emmc-identify nandscope identify /dev/mmcblk0 --json - --show-serial
umount /sys/kernel/debug
item emmc-asked nandscope identify /dev/mmcblk0
item emmc-probe nandscope probe /dev/mmcblk0 --quiet --time 60s --region 0..256MiB --json -
for at in 1 6 9 22 25 30; do dd if=/dev/urandom of=/dev/mmcblk0 bs=1M seek=$at count=1 conv=notrunc 2>/dev/null; done
sync
item emmc-before sums /dev/mmcblk0 8 24 32
item emmc-multi-block nandscope run multi-block /dev/mmcblk0 --write --consent 0x12345678 --region 8MiB..24MiB --time 10s --no-undo --quiet --json -
item emmc-after sums /dev/mmcblk0 8 24 32
rmmod vmmc

# --- writing: refused without consent; raw commands; old content put back; nothing outside the region
modprobe vmmc size_mb=64
wait_for /dev/mmcblk0
dd if=/dev/urandom of=/tmp/noise bs=1M count=2 2>/dev/null
for at in 0 22 25 54 56 62; do dd if=/tmp/noise of=/dev/mmcblk0 bs=1M seek=$at conv=notrunc 2>/dev/null; done
echo past the region | dd of=/dev/mmcblk0 bs=1M seek=60 conv=notrunc 2>/dev/null
sync
item no-consent nandscope run multi-block /dev/mmcblk0 --write --quiet
item before sums /dev/mmcblk0 24 56 64
item multi-block nandscope run multi-block /dev/mmcblk0 --write --consent 0x12345678 --region 24MiB..56MiB --time 120s --quiet --json -
item after sums /dev/mmcblk0 24 56 64
item left nandscope run multi-block /dev/mmcblk0 --write --consent 0x12345678 --region 24MiB..56MiB --time 10s --no-undo --quiet --json -
item left-after sums /dev/mmcblk0 24 56 64
rmmod vmmc

# --- a card without CMD23
modprobe vmmc size_mb=64 cmd23=0
wait_for /dev/mmcblk0
item no-cmd23 nandscope run multi-block /dev/mmcblk0 --write --consent 0x12345678 --region 24MiB..56MiB --time 60s --no-undo --quiet --json -

# --- a mounted card is not touched
mkfs.fat -F 32 /dev/mmcblk0 >/dev/null 2>&1
mkdir -p /mnt/card
mount -t vfat /dev/mmcblk0 /mnt/card || echo "GUEST: vfat does not mount"
cp /tmp/noise /mnt/card/noise
sync
item mounted nandscope probe /dev/mmcblk0 --quiet --time 5s
item mounted-write nandscope run multi-block /dev/mmcblk0 --write --consent 0x12345678 --quiet --time 5s
item mounted-identify nandscope identify /dev/mmcblk0
umount /mnt/card
mount -t vfat -o ro /dev/mmcblk0 /mnt/card
item mounted-content cmp /tmp/noise /mnt/card/noise
umount /mnt/card
item unmounted nandscope probe /dev/mmcblk0 --quiet --time 5s
rmmod vmmc

# --- volumes of ours in the kernel's hands
. ./formats.sh
# --- the fragmentation lab by the kernel: vfat and exFAT
for kind in vfat exfat; do
    modprobe $kind
    modprobe vmmc size_mb=48 block_ns=2000 prog_us=200
    wait_for /dev/mmcblk0
    if [ $kind = vfat ]; then fs=fat16; else fs=exfat; fi
    item lab-$kind-format nandscope format /dev/mmcblk0 --consent 0x12345678 --no-table --fs $fs --cluster 2KiB --label LAB --quiet
    mount -t $kind /dev/mmcblk0 /mnt/card || echo "GUEST: $kind does not mount"
    cp /tmp/noise /mnt/card/noise
    item lab-$kind-age nandscope age /mnt/card --passes 4 --largest 300KB --fill 0.6 --quiet
    item lab-$kind-verify nandscope age /mnt/card --verify
    item lab-$kind-map nandscope map /mnt/card
    item lab-$kind-refused nandscope defrag /mnt/card --quiet
    item lab-$kind-defrag nandscope defrag /mnt/card --quiet --consent 0x12345678 --spare /tmp
    item lab-$kind-again nandscope age /mnt/card --verify
    item lab-$kind-remove nandscope age /mnt/card --remove
    item lab-$kind-frag nandscope frag /mnt/card --quiet --passes 3 --largest 300KB --fill 0.6 --repeats 3 --folder 20 --sizes 512,32KiB,256KiB --consent 0x12345678 --spare /tmp --json -
    item lab-$kind-noise cmp /tmp/noise /mnt/card/noise
    ls /mnt/card /tmp >out/lab-$kind-left
    umount /mnt/card
    item lab-$kind-device nandscope map /dev/mmcblk0
    rmmod vmmc
done

# --- health blocks and checks
. ./health.sh

# --- another MMC host: QEMU's SDHCI and its SD card, addressed in bytes
modprobe sdhci-pci
wait_for /dev/mmcblk0
item sdhci-identify nandscope identify /dev/mmcblk0 --json - --show-serial
dd if=/tmp/noise of=/dev/mmcblk0 bs=1M seek=9 conv=notrunc 2>/dev/null
item sdhci-before sums /dev/mmcblk0 8 24 32
item sdhci-multi-block nandscope run multi-block /dev/mmcblk0 --write --consent 0xdeadbeef --region 8MiB..24MiB --time 120s --quiet --json -
item sdhci-after sums /dev/mmcblk0 8 24 32

# --- a USB reader: no registers, no raw commands
modprobe xhci-pci
modprobe usb-storage
modprobe sd_mod
wait_for /dev/sda
item usb-list nandscope list --json
usb=$(sed -n 's/.*"consent": "\(.*\)".*/\1/p' out/usb-list.out | tail -1)
item usb-identify nandscope identify /dev/sda --json -
item usb-probe nandscope probe /dev/sda --quiet --time 20s --json -
item usb-multi-block nandscope run multi-block /dev/sda --write --consent "$usb" --region 8MiB..40MiB --time 60s --no-undo --quiet --json -
dmesg >out/dmesg
touch out/complete
