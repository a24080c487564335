//! Arbitrary registers and arbitrary text: decoded and printed, or refused.

use super::*;

/// Numbers without a pattern, the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }
}

#[test]
fn any_register_decodes_and_prints() {
    let mut n = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 0..3000 {
        let (cid, csd, scr, ssr) = (n.bytes::<16>(), n.bytes::<16>(), n.bytes::<8>(), n.bytes::<64>());
        let mut ext = ExtCsdBytes::default();
        for at in 0..512 {
            if n.below(4) > 0 {
                ext.set(at, n.next() as u8);
            }
        }
        assert_eq!(Cid::sd(&cid).serial, Some(u32::from_be_bytes(cid[9..13].try_into().unwrap())));
        assert_eq!(Csd::sd(&csd).capacity.is_none(), csd[0] >> 6 == 3);
        assert!(Scr::decode(&scr).bus_widths.len() <= 2);
        assert!(Ssr::decode(&ssr, None).au.bytes.is_none_or(|b| b >= 16 * KIB));
        assert!(ExtCsd::decode(&ext).known_bytes <= 512);
        for kind in [None, Some(Kind::Sd), Some(Kind::Mmc), Some(Kind::Usb), Some(Kind::Other)] {
            let raw = RawRegisters { kind, cid: Some(cid), csd: Some(csd), scr: Some(scr), ssr: Some(ssr), ext_csd: Some(ext.clone()) };
            let d = declared::from_registers_on(raw, TODAY);
            assert_eq!(d.kind, kind.unwrap_or(Kind::Sd));
            assert!(text(&d).lines().count() > 1, "round {round}");
            assert!(d.without_serial().serial.is_none());
        }
    }
}

/// The attributes of a folder as people paste them: by `head`, by `grep -r`, or as notes.
fn headed(folder: &str, how: u32) -> String {
    let dir = data("sysfs/devices").join(folder);
    let files = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap()).filter(|e| e.file_type().unwrap().is_file());
    let mut files: Vec<(String, String)> =
        files.map(|e| (e.file_name().into_string().unwrap(), std::fs::read_to_string(e.path()).unwrap())).collect();
    files.sort();
    let lines = files.iter().map(|(name, value)| (name, value.trim())).map(|(name, value)| match how {
        0 => format!("==> /sys/block/mmcblk0/device/{name} <==\n{value}\n\n"),
        1 => format!("/sys/block/mmcblk1/device/{name}:{value}\n"),
        _ => format!("{name} : {value}\n"),
    });
    lines.collect()
}

#[test]
fn any_text_is_read_or_refused() {
    let others = ["ssr-goodram-irdm-v30-a2-64g.txt", "extcsd-samsung-8g-emmc51.txt", "sysfs-toshiba-se08g-2015.txt"];
    let ours = ["sysfs/kernel/debug/mmc1/mmc1:0001/ext_csd", "sysfs/devices/pci0/mmc_host/mmc0/mmc0:4567/ssr"].map(data);
    let theirs = others.iter().filter_map(|name| dump_of(&format!("registers/{name}")));
    let whole = ours.into_iter().chain(theirs).map(|path| std::fs::read_to_string(path).unwrap());
    let made = [headed("pci0/mmc_host/mmc0/mmc0:4567", 0), headed("soc/mmc_host/mmc1/mmc1:0001", 1), headed("pci0/usb1/1-4", 2)];
    let samples: Vec<String> = whole.chain(made).collect();
    let spice = [
        "==>",
        "<==",
        ":",
        "[",
        "]",
        "0x",
        "*\n",
        "/cid:",
        "ATTR{",
        "}==",
        "é",
        "\0",
        "00000000",
        "\n",
        "ssr",
        "E: MMC_TYPE=SD\n",
        "-",
        "99999999999999999999",
    ];
    let mut n = Numbers(42);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut chars: Vec<char> = samples[n.below(samples.len())].chars().collect();
        for _ in 0..n.below(12) {
            let at = n.below(chars.len() + 1);
            match n.below(4) {
                0 => chars.truncate(at),
                1 => drop(chars.drain(at..(at + n.below(40)).min(chars.len()).max(at))),
                2 => drop(chars.splice(at..at, spice[n.below(spice.len())].chars())),
                _ => drop(chars.splice(at..at, char::from_u32(n.next() as u32 % 0x3000))),
            }
        }
        let text_in: String = chars.into_iter().collect();
        let _ = (ext_csd_text::parse(text_in.as_bytes()), parse_hex("CSD", &text_in, 16), dump::parse(&text_in));
        match declared::from_dump_on(&text_in, TODAY) {
            Ok(d) => {
                read += 1;
                assert!(!text(&d).is_empty());
            }
            Err(e) => {
                refused += 1;
                assert!(!e.to_string().is_empty());
            }
        }
        let noise: Vec<u8> = (0..n.below(700)).map(|_| n.next() as u8).collect();
        assert_eq!(ext_csd_text::parse(&noise).is_ok(), noise.len() == 512);
    }
    assert!(read > 500 && refused > 500, "both outcomes are exercised: {read} read, {refused} refused");
}
