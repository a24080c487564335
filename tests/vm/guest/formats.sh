# Part of all.sh: volumes made by the program, mounted by the kernel's vfat and exFAT. Sparse images of 8 MiB to 2 TiB, then a card.

# Mounts, writes, mounts again, compares.
use() {
    mount -t "$1" "$2" /mnt/card || return 1
    mkdir /mnt/card/folder
    cp /tmp/noise "/mnt/card/a long name with spaces"
    cp /tmp/noise /mnt/card/folder/NOISE
    df -k /mnt/card | tail -n 1
    umount /mnt/card && mount -t "$1" -o ro "$2" /mnt/card || return 2
    cmp /tmp/noise "/mnt/card/a long name with spaces" && cmp /tmp/noise /mnt/card/folder/NOISE
    same=$?
    umount /mnt/card
    return $same
}

# NAME FILESYSTEM SIZE [options of format]
volume() {
    label=$1 fs=$2 bytes=$3
    shift 3
    truncate -s "$bytes" /tmp/card.img
    item "format-$label" nandscope format /tmp/card.img --consent "$bytes" --quiet --json "$@"
    start=$(sed -n 's/.*"start":\([0-9]*\).*/\1/p' "out/format-$label.out")
    losetup -o "${start:-0}" /dev/loop0 /tmp/card.img
    item "mount-$label" use "$fs" /dev/loop0
    losetup -d /dev/loop0
    item "audit-$label" nandscope layout audit /tmp/card.img --json
    rm /tmp/card.img
}

mkdir -p /mnt/card
[ -s /tmp/noise ] || dd if=/dev/urandom of=/tmp/noise bs=1M count=2 2>/dev/null
volume 8mib vfat 8388608
volume 60mib vfat 62914560 --label NANDSCOPE
volume 488mib vfat 511705088
volume 2gb vfat 2000683008
volume 4gb vfat 3965190144
volume 32gib vfat 34359738368
volume 64gb exfat 63864569856
volume 256gb exfat 256060514304 --label "Größe 256"
volume 2tib exfat 2199023255552
volume 12mib-blocks vfat 3965190144 --align 12MiB
volume no-table exfat 536870912 --fs exfat --no-table

# An SD card in the slot: the kernel is told of the new table. It has no secure discard.
modprobe vmmc size_mb=64
wait_for /dev/mmcblk0
item format-card nandscope format /dev/mmcblk0 --consent 0x12345678 --quiet
wait_for /dev/mmcblk0p1
item mount-card use vfat /dev/mmcblk0p1
item audit-card nandscope layout audit /dev/mmcblk0 --json
item secure-sd nandscope erase /dev/mmcblk0 --how secure --consent 0x12345678 --quiet
rmmod vmmc

# An eMMC has one, and keeps to its region.
modprobe vmmc size_mb=64 emmc=1
wait_for /dev/mmcblk0
for at in 6 9 22 25 30; do dd if=/tmp/noise of=/dev/mmcblk0 bs=1M seek=$at conv=notrunc 2>/dev/null; done
sync
cat /sys/block/mmcblk0/queue/discard_granularity >out/secure-granularity
item secure-before sums /dev/mmcblk0 8 24 32
item secure nandscope erase /dev/mmcblk0 --how secure --region 8MiB..24MiB --consent 0x12345678 --quiet --json
item secure-after sums /dev/mmcblk0 8 24 32
item discard-emmc nandscope erase /dev/mmcblk0 --region 24MiB..28MiB --consent 0x12345678 --quiet --json
rmmod vmmc
