//! What a card is wanted for: what each use asks of it, and how much it writes, with where every figure comes from.

use crate::units::{GIB, KIB, parse_rate, rate};
use serde::Serialize;
use std::str::FromStr;

/// How a use writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// Large pieces, one after the other.
    InOrder,
    /// Small pieces at the end of one file, with its table now and then.
    Appended,
    /// Small pieces all over.
    Scattered,
}

/// One use of a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Purpose {
    /// As it is named on the command line.
    pub name: String,
    /// For people.
    pub title: &'static str,
    /// Least sequential writes, bytes a second.
    pub sequential_write: f64,
    /// Least sequential reads, bytes a second; 0 where reading is no limit.
    pub sequential_read: f64,
    /// Files that are written at the same time.
    pub streams: u32,
    /// Bytes that the device holds back while the card is busy, where a source says so.
    pub buffer: Option<u64>,
    /// Least random reads and writes of 4 KiB a second, where the use has such limits.
    pub random: Option<[f64; 2]>,
    /// Where the limits are published.
    pub source: &'static str,
    /// Bytes a day, least and most.
    pub per_day: [f64; 2],
    /// Where that comes from.
    pub per_day_source: &'static str,
    pub writes: Writes,
}

const MB: f64 = 1e6;
const GB: f64 = 1e9;
/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// The usual names.
pub const NAMES: [&str; 8] = ["boot", "camera", "video-4k", "action-camera", "dashcam", "ip-camera", "3d-printer", "logger"];

/// All that is understood.
pub fn understood() -> String {
    format!("{}, or with a rate: logger:200kB/s, dashcam:4x20Mbit/s", NAMES.join(", "))
}

fn purpose(name: &str) -> Option<Purpose> {
    let base = Purpose {
        name: name.into(),
        title: "",
        sequential_write: 0.0,
        sequential_read: 0.0,
        streams: 1,
        buffer: None,
        random: None,
        source: "",
        per_day: [0.0; 2],
        per_day_source: "",
        writes: Writes::InOrder,
    };
    Some(match name {
        "boot" | "raspberry-pi" | "root" => Purpose {
            title: "the system of a small computer",
            sequential_write: 10.0 * MB,
            random: Some([1500.0, 500.0]),
            source: "application class A1 (SD Physical Layer 4.16), which the card test of Raspberry Pi OS asks for, too",
            per_day: [0.5 * GB, 10.0 * GB],
            per_day_source: "assumed: a desktop that is used now and then to a home server with a database; give your own with --per-day",
            writes: Writes::Scattered,
            ..base
        },
        "camera" | "full-hd" => Purpose {
            title: "Full HD video and photos",
            sequential_write: 10.0 * MB,
            source: "speed class 10 (SD Association, sdcard.org, speed classes)",
            per_day: [1.0 * GB, 36.0 * GB],
            per_day_source: "assumed: a quarter of an hour a day to an hour at the 10 MB/s of the class",
            ..base
        },
        "video-4k" => Purpose {
            title: "4K video",
            sequential_write: 30.0 * MB,
            source: "video speed class V30 and UHS grade U3 (SD Association, sdcard.org, speed classes)",
            per_day: [3.0 * GB, 108.0 * GB],
            per_day_source: "assumed: 100 s a day to an hour at the 30 MB/s of the class",
            ..base
        },
        "dashcam" => Purpose {
            title: "a dashcam",
            sequential_write: 4.0 * MB,
            source: "Tesla's owner's manuals: a sustained write speed of at least 4 MB/s",
            per_day: [1.75 * MB * 3600.0, 2.6 * MB * DAY],
            per_day_source: "14 to 21 Mbit/s (dashcam-wiki.info), an hour a day to all day",
            ..base
        },
        "ip-camera" => Purpose {
            title: "an IP camera that records all day",
            sequential_write: 256.0 * KIB as f64,
            source: "256 KB/s of a recorder (OpenIPC/firmware, thread 1747)",
            per_day: [256.0 * KIB as f64 * DAY; 2],
            per_day_source: "the same rate all day",
            ..base
        },
        "action-camera" => Purpose {
            title: "an action camera",
            sequential_write: 45e6 / 8.0,
            source: "GoPro HERO3 Black: about 45 Mbit/s, cards of class 10 or U1 (thediveo-e.blogspot.com, 2013); name the rate of yours: action-camera:120Mbit/s",
            per_day: [1.0 * GB, 45e6 / 8.0 * 3600.0],
            per_day_source: "assumed: three minutes to an hour a day",
            ..base
        },
        "3d-printer" => Purpose {
            title: "a 3D printer that prints from the card",
            sequential_read: 25_000.0,
            source: "Marlin's Configuration.h: 250000 bit/s (10 bits a byte) of G-code where a host sends it; from a card it is read as fast",
            per_day: [1.0 * MB, 50.0 * MB],
            per_day_source: "assumed: one small file to some large ones",
            ..base
        },
        "logger" => Purpose { name: "logger:100kB/s".into(), ..logger(100e3) },
        _ => return None,
    })
}

fn logger(bytes_per_second: f64) -> Purpose {
    Purpose {
        name: format!("logger:{bytes_per_second:.0}B/s"),
        title: "a data logger",
        sequential_write: bytes_per_second,
        sequential_read: 0.0,
        streams: 1,
        buffer: None,
        random: None,
        source: "the rate that was named (logger:RATE; 100 kB/s where none was)",
        per_day: [bytes_per_second * DAY; 2],
        per_day_source: "the same rate all day",
        writes: Writes::Appended,
    }
}

impl FromStr for Purpose {
    type Err = String;

    /// `boot`, `camera`, `logger:200kB/s` ...
    fn from_str(s: &str) -> Result<Purpose, String> {
        let name = s.trim().to_ascii_lowercase();
        // What follows the colon is printed as it was given: kB/s, Mbit/s.
        let as_given = |kind: &str| format!("{kind}:{}", s.trim().get(kind.len() + 1..).unwrap_or_default());
        if let Some(given) = name.strip_prefix("logger:") {
            let wrong = || format!("'{s}': write a rate such as logger:200kB/s");
            let bytes = parse_rate(given).map_err(|_| wrong())?;
            if !(LEAST..=GIB as f64).contains(&(bytes.0 as f64)) {
                return Err(format!("{}, of 1kB/s to 1GB/s", wrong()));
            }
            return Ok(Purpose { name: as_given("logger"), ..logger(bytes.0 as f64) });
        }
        if let Some((kind @ ("dashcam" | "action-camera" | "camera" | "video-4k" | "ip-camera"), given)) = name.split_once(':') {
            let wrong = || format!("'{s}': write streams and a bit rate such as {kind}:4x20Mbit/s");
            let (streams, rate) = given.split_once('x').map_or((Some(1), given), |(n, r)| (n.parse().ok(), r));
            let streams: u32 = streams.filter(|n| (1..=64).contains(n)).ok_or_else(wrong)?;
            let each = bits(rate).ok_or_else(wrong)?;
            let total = each * f64::from(streams);
            let p = purpose(kind).ok_or_else(wrong)?;
            return Ok(Purpose {
                name: as_given(kind),
                streams,
                sequential_write: total,
                random: None,
                source: "the streams and the bit rate that were named",
                per_day: [total * 3600.0, total * DAY],
                per_day_source: "the same rate, an hour a day to all day",
                ..p
            });
        }
        purpose(&name).ok_or_else(|| {
            let near = crate::device::nearest(&name, NAMES.into_iter());
            let meant = near.map_or(String::new(), |n| format!(" did you mean {n}?"));
            format!("'{s}' is no use of a card that is known;{meant} there are {}", understood())
        })
    }
}

/// Bytes a second that any card takes: less says nothing of one, and takes longer than anybody waits.
const LEAST: f64 = 1e3;

/// A rate in bytes a second, from `20Mbit/s` or `4MB/s`.
fn bits(text: &str) -> Option<f64> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let bytes = match text.strip_suffix("bit") {
        Some(t) => {
            let (number, unit) = match t.as_bytes().last()? {
                b'k' => (&t[..t.len() - 1], 1e3),
                b'm' => (&t[..t.len() - 1], 1e6),
                b'g' => (&t[..t.len() - 1], 1e9),
                _ => (t, 1.0),
            };
            number.parse::<f64>().ok()? * unit / 8.0
        }
        None => parse_rate(text).ok()?.0 as f64,
    };
    (LEAST..=GIB as f64).contains(&bytes).then_some(bytes)
}

impl Purpose {
    /// What it asks for, in words: `10.0 MB/s of sequential writes, 500 random writes and 1500 random reads of 4 KiB a second`.
    pub fn needs(&self) -> String {
        let random =
            self.random.map_or(String::new(), |[r, w]| format!(", {w:.0} random writes and {r:.0} random reads of 4 KiB a second"));
        let streams = if self.streams > 1 { format!(" in {} streams", self.streams) } else { String::new() };
        let reads = if self.sequential_read > 0.0 { format!("{} of sequential reads", rate(self.sequential_read)) } else { String::new() };
        let writes = if self.sequential_write > 0.0 {
            format!("{} of sequential writes{streams}{random}", rate(self.sequential_write))
        } else {
            String::new()
        };
        [writes, reads].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_and_has_its_sources() {
        for name in NAMES {
            let p: Purpose = name.parse().unwrap();
            assert!(p.sequential_write + p.sequential_read > 0.0 && !p.source.is_empty() && !p.title.is_empty(), "{name}");
            assert!(p.per_day[0] > 0.0 && p.per_day[1] >= p.per_day[0] && !p.per_day_source.is_empty(), "{name}");
        }
        let p: Purpose = "dashcam:4x20Mbit/s".parse().unwrap();
        assert_eq!((p.streams, p.sequential_write), (4, 1e7));
        assert_eq!(p.name, "dashcam:4x20Mbit/s", "the unit as it was given");
        for wrong in
            ["dashcam:", "dashcam:0x1Mbit/s", "dashcam:99x1Mbit/s", "camera:4x", "camera:nanMbit/s", "boot:4x1MB/s", "dashcam:4x20"]
        {
            assert!(wrong.parse::<Purpose>().is_err(), "{wrong}");
        }
        assert!("fridge".parse::<Purpose>().unwrap_err().contains("boot, camera"));
    }

    #[test]
    fn a_logger_has_the_rate_it_is_given() {
        for (text, bytes) in [("logger:200kB/s", 200e3), ("logger:1MiB/s", 1_048_576.0), ("LOGGER", 100e3)] {
            assert_eq!(text.parse::<Purpose>().unwrap().sequential_write, bytes, "{text}");
        }
        for wrong in ["logger:", "logger:fast", "logger:0", "logger:200", "logger:9TB/s"] {
            assert!(wrong.parse::<Purpose>().is_err(), "{wrong}");
        }
    }
}
