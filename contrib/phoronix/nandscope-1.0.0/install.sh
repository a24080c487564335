#!/bin/sh
# nandscope is on the PATH already; the wrapper takes the figure that the option names. CARD is the card, as /dev/mmcblk0.
cat > nandscope-card <<'END'
#!/bin/sh
"${NANDSCOPE:-nandscope}" check "${CARD:?the card, as /dev/mmcblk0}" --read-only -q --format lava-results > nandscope.txt
code=$?
# 3 and more are verdicts; the figures are there.
[ $code -lt 3 ] && [ $code -ne 0 ] && exit $code
[ -z "${LOG_FILE:-}" ] || exec > "$LOG_FILE"
sed -n "s/^$1-[0-9a-z-]* pass \([0-9.]*\) bytes_per_second$/nandscope pass \1 bytes_per_second/p" nandscope.txt
END
chmod +x nandscope-card
