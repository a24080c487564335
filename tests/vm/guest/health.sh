# Part of all.sh: what `check` says of cards in a slot: a health block by CMD56, twice with writes between; a maker of whom no such block
# is known; a card that does not answer; an eMMC; a write test that is put back; a use.
modprobe vmmc size_mb=128 manfid=0x1d health=1
wait_for /dev/mmcblk0
for at in 0 40 70 100; do dd if=/tmp/noise of=/dev/mmcblk0 bs=1M seek=$at conv=notrunc 2>/dev/null; done
sync
item check-health nandscope check /dev/mmcblk0 --quick --health --history /tmp/history --json -
item check-before sums /dev/mmcblk0 32 96 128
item check-write nandscope check /dev/mmcblk0 --quick --write --consent 0x12345678 --for logger:100kB/s --class C10 --json -
item check-after sums /dev/mmcblk0 32 96 128
dd if=/dev/zero of=/dev/mmcblk0 bs=1M seek=16 count=64 conv=notrunc 2>/dev/null
sync
item check-again nandscope check /dev/mmcblk0 --quick --health --history /tmp/history --json -
item check-text nandscope check /dev/mmcblk0 --quick --health
rmmod vmmc

# The same card without an answer, and of a maker of whom none is known: two commands at the most, none but the known one.
modprobe vmmc size_mb=64 manfid=0x1d trace=1
wait_for /dev/mmcblk0
item silent-identify nandscope identify /dev/mmcblk0 --health
dmesg | grep CMD56 >out/silent-commands
model trace 0
item check-silent nandscope check /dev/mmcblk0 --quick --health --json -
rmmod vmmc
modprobe vmmc size_mb=64 manfid=0x42
wait_for /dev/mmcblk0
item check-unknown nandscope check /dev/mmcblk0 --quick --health --json -
rmmod vmmc
modprobe vmmc size_mb=128 emmc=1
wait_for /dev/mmcblk0
item check-emmc nandscope check /dev/mmcblk0 --quick --json -
rmmod vmmc
