//! The published tables of record benchmarks.

/// kB/s, longest, shortest and mean call in us.
pub type Row = [f64; 4];

pub struct Greiman {
    pub card: &'static str,
    pub record: u64,
    pub write: Row,
    pub read: Row,
}

const fn row(card: &'static str, record: u64, write: Row, read: Row) -> Greiman {
    Greiman { card, record, write, read }
}

/// G5: SdFat's bench on an Arduino, files of 5 MB.
pub const GREIMAN: [Greiman; 11] = [
    row("wintec-1gb", 100, [278.40, 84916.0, 84.0, 354.0], [338.89, 2164.0, 80.0, 289.0]),
    row("swissbit-1gb", 100, [265.10, 72608.0, 84.0, 372.0], [338.07, 2172.0, 80.0, 290.0]),
    row("sandisk-c2-2gb", 100, [127.41, 61372.0, 84.0, 778.0], [276.33, 3180.0, 80.0, 356.0]),
    row("amazon-c10-4gb", 100, [165.69, 191320.0, 84.0, 598.0], [290.17, 3108.0, 80.0, 339.0]),
    row("sdxc-64gb", 100, [116.69, 192708.0, 84.0, 851.0], [296.70, 2980.0, 80.0, 331.0]),
    row("atp-slc-1gb", 100, [258.95, 69400.0, 84.0, 380.0], [329.38, 2240.0, 80.0, 298.0]),
    row("wintec-1gb", 512, [407.57, 85756.0, 1152.0, 1250.0], [488.39, 2088.0, 1032.0, 1043.0]),
    row("swissbit-1gb", 512, [384.92, 67700.0, 1160.0, 1324.0], [486.68, 2096.0, 1036.0, 1046.0]),
    row("sandisk-c2-2gb", 512, [152.31, 59452.0, 2132.0, 3355.0], [366.17, 2700.0, 1288.0, 1393.0]),
    row("amazon-c10-4gb", 512, [200.62, 191596.0, 2132.0, 2545.0], [391.00, 3020.0, 1164.0, 1304.0]),
    row("atp-slc-1gb", 512, [392.32, 62500.0, 1184.0, 1339.0], [469.41, 2164.0, 1072.0, 1085.0]),
];

/// C8: 2 KiB a call on an ATmega64: card, kB/s written, kB/s read.
pub const CHAN: [(&str, f64, f64); 3] =
    [("chan-sdc-128mb", 77.0, 328.0), ("chan-sdc-512mb", 28.0, 234.0), ("chan-mmc-128mb", 182.0, 312.0)];
