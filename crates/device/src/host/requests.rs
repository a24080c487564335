//! How writes were cut and joined on their way to the medium (C23).

use crate::units::{Bytes, SECTOR, three};
use serde::Serialize;

/// The writes that one layer sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    pub requests: u64,
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest: u64,
    /// Bytes in requests that hold a whole call of the application or more.
    pub whole: u64,
}

impl Sizes {
    /// Counts a request; `call`: bytes of a call of the application.
    pub fn add(&mut self, len: u64, call: u64) {
        self.requests += 1;
        self.bytes += len;
        self.largest = self.largest.max(len);
        self.whole += if len >= call { len } else { 0 };
    }
}

/// One layer and what it sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// "file library", "FAT16 in-process", "kernel", "card".
    pub name: String,
    pub sizes: Sizes,
    /// Only number and bytes are known, as of a kernel's statistics.
    pub mean_only: bool,
    /// Bytes it sends in one piece at most, where it says so.
    pub limit: Option<u64>,
}

/// The name of the layer whose requests are the commands that the card got.
pub const CARD: &str = "card";
/// The name of the layer between files and a block device.
pub const KERNEL: &str = "kernel";

impl Layer {
    fn text(&self) -> String {
        let s = &self.sizes;
        let what = if self.name == CARD { "commands" } else { "writes" };
        let limit = self.limit.map_or(String::new(), |l| format!(", {} at most in one", Bytes(l)));
        let mean = s.bytes as f64 / s.requests.max(1) as f64;
        let mean = if mean < 1024.0 { format!("{} B", three(mean)) } else { format!("{} KiB", three(mean / 1024.0)) };
        match self.mean_only {
            true => format!("{}: {} {what} of {mean} on average, those of all programs{limit}", self.name, s.requests),
            false => format!("{}: {} {what} of up to {}, {mean} on average{limit}", self.name, s.requests, Bytes(s.largest)),
        }
    }
}

/// What became of calls of `call` bytes, the answer first: the largest request that reached the medium, who cut the calls, then each layer.
/// Empty where nothing was counted.
pub fn path(call: u64, layers: &[Layer]) -> Vec<String> {
    let Some(last) = layers.last() else { return vec![] };
    let (mut largest, mut cutter) = (call, None);
    for l in layers.iter().filter(|l| !l.mean_only) {
        let sent = l.limit.map_or(l.sizes.largest, |most| most.min(l.sizes.largest));
        if sent < largest.min(call) {
            let by_limit = l.limit == Some(sent) && l.name != KERNEL;
            cutter = Some(match l.name.as_str() {
                // What the card got is what was sent to it.
                CARD => "driver or the reader, on the way to the card".to_string(),
                by if by_limit => format!("{by}, for the device takes no more in one piece"),
                by => by.to_string(),
            });
        }
        largest = sent;
    }
    let reached = if last.name == CARD { "reached the card" } else { "was sent to the device" };
    let share = 100.0 * last.sizes.whole as f64 / last.sizes.bytes.max(1) as f64;
    let fate = match cutter {
        Some(by) => format!("calls of {} are cut by the {by}", Bytes(call)),
        None if call < SECTOR => format!("calls of {} are joined", Bytes(call)),
        None => format!("calls of {} stay whole ({share:.0} % of all bytes went in requests as long or longer)", Bytes(call)),
    };
    let mut out = vec![match (last.mean_only, last.limit) {
        (false, _) => format!("largest write that {reached}: {}; {fate}", Bytes(largest)),
        (true, Some(most)) if most < call => {
            format!("largest write that {reached}: {} at most; calls of {} are cut by the {}", Bytes(most), Bytes(call), last.name)
        }
        (true, _) => format!(
            "largest write that {reached}: undecided, because the {} counts writes and bytes only, and those of all programs; calls have {}",
            last.name,
            Bytes(call)
        ),
    }];
    let each: Vec<String> = layers.iter().map(Layer::text).collect();
    out.push(format!("calls of {}; {}", Bytes(call), each.join("; ")));
    if last.name == KERNEL {
        out.push("what a reader makes of them only times show: nandscope run multi-block DEVICE --write".into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, sent: &[u64], call: u64) -> Layer {
        let mut sizes = Sizes::default();
        sent.iter().for_each(|&n| sizes.add(n, call));
        Layer { name: name.into(), sizes, mean_only: false, limit: None }
    }

    /// Every layer may be the one that cuts, and it is named; the answer is what the last one sent.
    #[test]
    fn the_layer_that_cuts_is_named() {
        let k = |n: u64| n << 10;
        for (call, sent, cutter, largest) in [
            (k(64), [k(64), k(64)], None, "64 KiB"),
            (k(64), [k(64), k(16)], Some("cut by the driver or the reader"), "16 KiB"),
            (k(512), [k(32), k(32)], Some("cut by the FAT16"), "32 KiB"),
            (k(512), [k(120), k(64)], Some("cut by the driver or the reader"), "64 KiB"),
            (100, [512, 512], None, "512 B"),
        ] {
            let lines = path(call, &[layer("FAT16", &[sent[0], 512], call), layer(CARD, &[sent[1], 512], call)]);
            assert!(lines[0].starts_with(&format!("largest write that reached the card: {largest};")), "{lines:?}");
            match cutter {
                Some(c) => assert!(lines[0].contains(c), "{lines:?}"),
                None => assert!(lines[0].contains(if call < 512 { "are joined" } else { "stay whole" }), "{lines:?}"),
            }
            assert_eq!(lines.len(), 2);
        }
        assert!(path(512, &[]).is_empty());
    }

    /// A kernel that counts requests and bytes of all programs says what the largest was at most, and nothing more.
    #[test]
    fn a_mean_is_no_largest() {
        let kernel = |mean: u64, limit: Option<u64>| {
            let sizes = Sizes { requests: 10, bytes: 10 * mean, ..Sizes::default() };
            path(65536, &[Layer { name: KERNEL.into(), sizes, mean_only: true, limit }])
        };
        for (mean, limit) in [(65536, None), (65536, Some(524_288)), (20_000, None), (900_000, Some(65536))] {
            assert!(kernel(mean, limit)[0].contains("undecided, because"), "{:?}", kernel(mean, limit));
        }
        assert!(kernel(20_000, Some(32768))[0].contains("32 KiB at most; calls of 64 KiB are cut by the kernel"));
        assert!(kernel(65536, None)[2].contains("run multi-block"));
    }

    /// What cuts calls to what the device takes says so.
    #[test]
    fn a_limit_of_the_device_is_named() {
        let call = 512 << 10;
        let volume = Layer { limit: Some(120 << 10), ..layer("FAT32 volume", &[120 << 10, 512], call) };
        let lines = path(call, &[volume, layer(CARD, &[120 << 10, 512], call)]);
        assert!(
            lines[0].ends_with("120 KiB; calls of 512 KiB are cut by the FAT32 volume, for the device takes no more in one piece"),
            "{lines:?}"
        );
    }
}
