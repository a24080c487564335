//! `dd` and `hdparm`, as a shell prints them: of GNU, busybox and BSD.

use super::{Benchmark, words_of};
use crate::samples::metric::Metric;
use crate::units::Bytes;

/// What hdparm printed, where the lines hold some of it.
pub fn hdparm(lines: &[&str]) -> Option<Result<Benchmark, String>> {
    lines.iter().any(|l| hdparm_row(l).is_some()).then_some(())?;
    let mut b = Benchmark { tool: "hdparm", ..Benchmark::default() };
    timings(lines, &mut b);
    let why = "hdparm printed no rate of the device: times of its cache say nothing of a card";
    Some(if b.metrics.is_empty() { Err(why.into()) } else { Ok(b) })
}

/// What dd printed, where the lines hold some of it. `overwritten` as in [`overwritten`].
pub fn dd(lines: &[&str], overwritten: bool) -> Option<Result<Benchmark, String>> {
    let counted = |l: &&str| records(l).is_some();
    // In every language records were read, and written.
    let both = lines.windows(2).any(|w| w.iter().all(counted)) || lines.iter().any(|l| l.ends_with(" records in") && counted(l));
    (both || lines.iter().any(|l| copied(l).is_some())).then_some(())?;
    let mut b = Benchmark { tool: "dd", ..Benchmark::default() };
    copies_of(lines, overwritten, &mut b);
    Some(if b.metrics.is_empty() { Err("dd printed no rate; was it cut off?".into()) } else { Ok(b) })
}

/// "20.5", or "20,5" as some languages have it.
fn number(word: &str) -> Option<f64> {
    word.replace(',', ".").parse().ok().filter(|v: &f64| v.is_finite() && *v > 0.0)
}

/// What was timed, MiB and seconds of "Timing buffered disk reads:  62 MB in  3.06 seconds =  20.26 MB/sec", and its rate in kB/s, if that is there.
fn hdparm_row(line: &str) -> Option<(&str, f64, f64, Option<f64>)> {
    let (what, rest) = line.trim().strip_prefix("Timing ")?.split_once(':')?;
    let w: Vec<&str> = rest.split_whitespace().collect();
    let [mb, "MB", "in", seconds, "seconds", ref said @ ..] = w[..] else { return None };
    let printed = match said {
        ["=", rate, "MB/sec", ..] => number(rate).map(|r| r * 1048.576),
        ["=", rate, "kB/sec", ..] => number(rate).map(|r| r * 1.024),
        _ => None,
    };
    Some((what, number(mb)?, number(seconds)?, printed))
}

/// "/dev/mmcblk0:", above what was timed on it.
fn device(line: &str) -> Option<&str> {
    line.trim().strip_suffix(':').filter(|d| d.starts_with("/dev/") && !d.contains(char::is_whitespace))
}

fn timings(lines: &[&str], b: &mut Benchmark) {
    for line in lines {
        if let Some(d) = device(line) {
            b.of([None, Some(d.into()), None]);
        }
        let Some((what, mb, seconds, printed)) = hdparm_row(line) else { continue };
        let how = match what {
            "buffered disk reads" => "hdparm, through the page cache",
            "O_DIRECT disk reads" => "hdparm, direct",
            // What it took from memory says nothing of the card.
            _ => continue,
        };
        // Its MB are of 2^20 bytes.
        let rate = mb * 1048.576 / seconds;
        // Seconds have two digits behind the point, of three at least.
        if let Some(p) = printed.filter(|p| edited(*p, rate)) {
            b.flags.push(format!("hdparm: {mb} MB in {seconds} s are {rate:.0} kB/s, but it says {p:.0}"));
        }
        b.metrics.push(Metric::new("sequential read", how, "kB/s", &[rate]));
    }
}

/// Three digits of a rate, and seconds that BSD and busybox round to six: what is further off was edited.
fn edited(printed: f64, rate: f64) -> bool {
    !(0.93..1.07).contains(&(printed / rate))
}

/// Full and partial records of "1024+0 records in", "1024+0 Datensätze ein".
fn records(line: &str) -> Option<(u64, u64)> {
    let digit = |c: char| c.is_ascii_digit();
    let (before, after) = line.split_once('+').filter(|_| line.len() <= 100)?;
    let (said, full) = before.split_at(before.trim_end_matches(digit).len());
    let (partial, rest) = after.split_at(after.len() - after.trim_start_matches(digit).len());
    let words = rest.chars().any(char::is_alphabetic) && !said.contains(digit) && !rest.contains(|c: char| digit(c) || c == '=');
    words.then_some((full.parse().ok()?, partial.parse().ok()?))
}

/// What a line of dd says.
#[derive(Clone, Copy, Debug)]
struct Copied<'a> {
    /// What a script calls it: "bs=4k: 104857600 bytes ...".
    name: Option<&'a str>,
    bytes: u64,
    seconds: f64,
    /// The rate as printed, in bytes a second.
    printed: f64,
    /// Seconds without a fraction, as the progress of GNU's dd has them, and its last line as good as never.
    whole: bool,
}

/// "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 52.3 s, 20.5 MB/s", in any language, and "1073741824 bytes transferred in 52.3 secs
/// (20530436 bytes/sec)".
fn copied(line: &str) -> Option<Copied<'_>> {
    let name = line.split_once(": ").filter(|x| x.1.starts_with(|c: char| c.is_ascii_digit())).map(|x| x.0.trim());
    let count = |text: &str| text.split('(').next()?.split(|c: char| !c.is_ascii_digit()).rfind(|w| !w.is_empty())?.parse::<u64>().ok();
    if let Some((bytes, rest)) = line.split_once(" bytes transferred in ") {
        let (seconds, rest) = rest.split_once(" secs (")?;
        let (seconds, printed) = (number(seconds)?, number(rest.split_whitespace().next()?)?);
        return Some(Copied { name, bytes: count(bytes)?, seconds, printed, whole: false });
    }
    let wide = (!line.is_ascii()).then(|| line.replace(['，', '、'], ", ").replace('（', " (").replace('）', ") "));
    let line = wide.as_deref().unwrap_or(line);
    let english = line.split_once("copied, ").filter(|x| x.0.contains(" bytes "));
    let (front, time, rate) = match english {
        Some((front, tail)) => {
            let mut parts = tail.split(", ");
            (front, parts.next()?, parts.next()?)
        }
        None => {
            let (rest, rate) = line.rsplit_once(", ")?;
            let (front, time) = rest.rsplit_once(", ")?;
            (front, time, rate)
        }
    };
    let said = time.trim().trim_end_matches(|c: char| c.is_alphabetic() || c == '.').trim_end();
    let (seconds, whole) = (number(said)?, said.bytes().all(|b| b.is_ascii_digit()));
    let printed = bytes_a_second(rate.trim())?;
    let bytes = count(front)?;
    // Words that nobody knows are of dd where the figures fit together.
    let fits = english.is_some() || time.trim() != said && bytes >= 512 && !edited(printed, bytes as f64 / seconds);
    fits.then_some(Copied { name, bytes, seconds, printed, whole })
}

/// "20.5 MB/s", "9,4 МБ/с", "10,6 Mo/s". GNU's "kB" and "MB" are of 1000, busybox's of 1024: within the rounding of what is printed either
/// is right.
fn bytes_a_second(text: &str) -> Option<f64> {
    let at = text.find(char::is_alphabetic)?;
    let (size, time) = text[at..].split_once('/')?;
    let (size, binary) = size.split_once('i').map_or((size, false), |(prefix, _)| (prefix, true));
    let power = match size.chars().next()? {
        'B' | 'b' | 'o' | 'Б' | 'б' => 0,
        'k' | 'K' | 'к' | 'К' => 1,
        'M' | 'М' => 2,
        'G' | 'Г' => 3,
        _ => return None,
    };
    let sound = size.chars().count() <= 6 && time.starts_with(char::is_alphabetic);
    sound.then_some(number(text[..at].trim())? * if binary { 1024f64 } else { 1e3 }.powi(power))
}

/// Whether a line was written over by the next one, as progress is: a carriage return stands between them.
pub fn overwritten(text: &str) -> bool {
    text.split('\n').any(|l| l.trim_end_matches('\r').split('\r').count() > 1 && l.split('\r').any(|p| copied(p.trim()).is_some()))
}

/// What a command line of dd says of it.
#[derive(Clone, Default)]
struct Asked {
    write: Option<bool>,
    block: Option<u64>,
    cached: Option<bool>,
    /// The device or file that was read or written.
    target: Option<String>,
    /// It stands in a loop: several copies follow.
    again: bool,
}

/// "sudo dd if=/dev/zero of=/dev/sdb bs=1M count=1024 oflag=direct".
fn asked(line: &str) -> Option<Asked> {
    let words = words_of(line, "dd")?;
    let of = |key: &str| words.iter().find_map(|w| w.strip_prefix(key));
    let (from, to) = (of("if="), of("of="));
    from.or(to)?;
    let nothing = |p: &str| ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"].contains(&p);
    let write = match (from.is_none_or(nothing), to.is_none_or(nothing)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    };
    let flags = [of("oflag="), of("iflag="), of("conv=")].into_iter().flatten().flat_map(|f| f.split(','));
    // macOS has a raw device beside each that is cached.
    let raw = [from, to].into_iter().flatten().any(|p| p.starts_with("/dev/rdisk"));
    let direct = raw || flags.clone().any(|f| f == "direct");
    let synced = flags.clone().any(|f| ["sync", "dsync", "fsync", "fdatasync"].contains(&f));
    let target = if write == Some(false) { from } else { to }.map(str::to_string);
    let again = line.split_whitespace().any(|w| w == "do" || w == "done") || words.iter().any(|w| w.contains('$'));
    Some(Asked { write, block: of("bs=").and_then(size), cached: Some(!(direct || write == Some(true) && synced)), target, again })
}

/// "4k", "1M" of 1024, "1kB", "1MB" of 1000.
fn size(word: &str) -> Option<u64> {
    let at = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let unit: u64 = match &word[at..] {
        "" | "c" => 1,
        "b" => 512,
        "k" | "K" | "KiB" => 1 << 10,
        "m" | "M" | "MiB" => 1 << 20,
        "g" | "G" | "GiB" => 1 << 30,
        "kB" => 1000,
        "MB" => 1_000_000,
        _ => return None,
    };
    word[..at].parse::<u64>().ok()?.checked_mul(unit).filter(|b| *b > 0)
}

/// Lines of one dd without its records: its progress, or its last line alone, as `tail -1` leaves it.
#[derive(Default)]
struct Bare<'a> {
    last: Option<Copied<'a>>,
    /// The last line goes on where the one before it was.
    grows: bool,
}

impl<'a> Bare<'a> {
    /// Takes a line; gives the one before, where that was the end of another copy.
    fn take(&mut self, c: Copied<'a>) -> Option<Copied<'a>> {
        let before = self.last.replace(c);
        let grows = before.is_some_and(|b| b.bytes < c.bytes && b.seconds < c.seconds && b.name == c.name);
        // Progress, and then the end.
        self.grows = grows && (c.whole || before.is_some_and(|b| !b.whole));
        before.filter(|b| !grows && !b.whole)
    }
}

fn copies_of(lines: &[&str], overwritten: bool, b: &mut Benchmark) {
    let mut said: Option<Asked> = None;
    let (mut read, mut counts) = (None, false);
    let mut bare = Bare::default();
    let mut silent = false;
    let mut one = |c: Copied, said: &mut Option<Asked>, records, b: &mut Benchmark| {
        // A loop is asked once for all its copies.
        let asked = if said.as_ref().is_some_and(|s| s.again) { said.clone() } else { said.take() }.unwrap_or_default();
        silent |= asked.write.is_none();
        push(c, asked, records, b);
    };
    for line in lines {
        let above = std::mem::replace(&mut counts, records(line).is_some());
        if let Some(a) = asked(line) {
            if let Some(c) = bare.last.filter(|c| !c.whole && !bare.grows) {
                one(c, &mut said, None, b);
            }
            (said, read, bare) = (Some(a), None, Bare::default());
        } else if let Some(r) = records(line) {
            // Below the records that were read stand those that were written.
            read = read.filter(|_| above).or(Some(r));
            bare = Bare::default();
        } else if let Some(c) = copied(line) {
            if read.is_none() {
                if let Some(ended) = bare.take(c) {
                    one(ended, &mut said.clone(), None, b);
                }
                continue;
            }
            one(c, &mut said, read.take(), b);
        }
    }
    if let Some(c) = bare.last {
        one(c, &mut said, None, b);
        if bare.grows || c.whole && overwritten {
            b.notes.push("the last dd is cut off: its rate is that of the last line of its progress".into());
        } else if c.whole {
            b.notes
                .push("the last dd may be cut off: whole seconds, and no records before them, are a line of its progress as a rule".into());
        }
    }
    if silent {
        b.notes.push("dd does not print whether it read the card or wrote it: paste its command line, too".into());
    }
}

fn push(Copied { name, bytes, seconds, printed, .. }: Copied, asked: Asked, records: Option<(u64, u64)>, b: &mut Benchmark) {
    let what = match asked.write {
        Some(true) => "sequential write",
        Some(false) => "sequential read",
        None => "sequential, read or written",
    };
    let whole = records.filter(|r| r.0 > 0 && r.1 == 0 && bytes.is_multiple_of(r.0)).map(|r| bytes / r.0);
    let called = || name?.split_whitespace().find_map(|w| size(w.strip_prefix("bs=")?));
    let block = asked.block.or(whole).or_else(called).map_or("block not stated".into(), |s| Bytes(s).to_string());
    let cache = match asked.cached {
        Some(true) => ", through the page cache",
        Some(false) => ", to the device",
        None => "",
    };
    let rate = bytes as f64 / seconds;
    b.of([None, asked.target, name.map(str::to_string)]);
    if edited(printed, rate) {
        b.flags.push(format!("dd: {bytes} bytes in {seconds} s are {:.0} kB/s, but it says {:.0}", rate / 1e3, printed / 1e3));
    }
    b.metrics.push(Metric::new(what, format!("{block}, dd{cache}"), "kB/s", &[rate / 1e3]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::import::clean;

    fn read(text: &str) -> Option<Result<Benchmark, String>> {
        let lines = clean::lines(text.as_bytes());
        let lines: Vec<&str> = lines.iter().map(|l| l.text.as_str()).collect();
        hdparm(&lines).or_else(|| dd(&lines, overwritten(text)))
    }

    fn figures(text: &str) -> Vec<(String, String, f64)> {
        read(text).unwrap().unwrap().metrics.into_iter().map(|m| (m.name, m.conditions, (m.value * 10.0).round() / 10.0)).collect()
    }

    #[test]
    fn what_dd_prints() {
        let gnu = "$ sudo dd if=/dev/zero of=/dev/sdb bs=1M count=1024 oflag=direct status=progress\n\
            42991616 bytes (43 MB, 41 MiB) copied, 2 s, 21.5 MB/s\r85983232 bytes (86 MB, 82 MiB) copied, 4 s, 21.4 MB/s\n\
            1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 52.3 s, 20.5 MB/s\n";
        assert_eq!(figures(gnu), [("sequential write".into(), "1 MiB, dd, to the device".into(), 20530.4)]);
        let read_back =
            "dd if=/dev/sdb of=/dev/null bs=4M\n256+0 records in\n256+0 records out\n1073741824 Bytes (1,1 GB) copied, 48,1 s, 22,3 MB/s\n"
                .replace("Bytes", "bytes");
        assert_eq!(figures(&read_back), [("sequential read".into(), "4 MiB, dd, through the page cache".into(), 22323.1)]);
        let bsd = "1024+0 records in\n1024+0 records out\n1073741824 bytes transferred in 52.300000 secs (20530436 bytes/sec)\n";
        assert_eq!(figures(bsd), [("sequential, read or written".into(), "1 MiB, dd".into(), 20530.4)]);
        let busybox = "# dd if=/dev/mmcblk0 of=/dev/null bs=1M count=100\n100+0 records in\n100+0 records out\n\
            104857600 bytes (100.0MB) copied, 5.123000 seconds, 19.5MB/s\n";
        assert_eq!(figures(busybox), [("sequential read".into(), "1 MiB, dd, through the page cache".into(), 20468.0)]);
    }

    #[test]
    fn dd_in_other_languages() {
        let command = "$ dd if=/dev/zero of=/dev/sdb bs=4M count=10 oflag=direct\n";
        for said in [
            "10+0 Datensätze ein\n10+0 Datensätze aus\n41943040 Bytes (42 MB, 40 MiB) kopiert, 4,44168 s, 9,4 MB/s",
            "10+0 enregistrements lus\n10+0 enregistrements écrits\n41943040 octets (42 MB, 40 MiB) copiés, 4,44168 s, 9,4 MB/s",
            "10+0 записей получено\n10+0 записей отправлено\nскопировано 41943040 байт (42 MB), 4,44168 c, 9,4 MB/c",
            "10+0 записей получено\n10+0 записей отправлено\n41943040 байт (42 MB, 40 MiB) скопирован, 4,44168 s, 9,4 МБ/с",
            "记录了10+0 的读入\n记录了10+0 的写出\n41943040字节（42 MB，40 MiB）已复制，4.44168 s，9.4 MB/s",
            "10+0 レコード入力\n10+0 レコード出力\n41943040 バイト (42 MB, 40 MiB) コピーされました、 4.44168 秒、 9.4 MB/秒",
        ] {
            assert_eq!(
                figures(&format!("{command}{said}\n")),
                [("sequential write".into(), "4 MiB, dd, to the device".into(), 9443.1)],
                "{said}"
            );
            assert_eq!(figures(said), [("sequential, read or written".into(), "4 MiB, dd".into(), 9443.1)], "{said}");
        }
        // Words that are none of dd's count only where the figures fit together.
        for prose in [
            "it wrote 41943040 in all, 4 s, 90 MB/s",
            "2 cards, 5 s, 3 MB/s",
            "1+1 makes two",
            "we saw 41943040, 4.44168, 9.4 MB/s",
            "1 + 1 of them, 5 s, 3 m/s",
        ] {
            assert!(read(prose).is_none(), "{prose}");
        }
    }

    #[test]
    fn one_command_of_many_copies() {
        let copy = |n: u64, s: &str| format!("1000+0 records in\n1000+0 records out\n{} bytes copied, {s} s, 1 MB/s\n", n * 1000);
        let text = format!(
            "$ for bs in 512 4k; do dd if=/dev/zero of=/dev/sdb bs=$bs count=1000 oflag=direct; done\n{}{}",
            copy(512, "0.512"),
            copy(4096, "4.096")
        );
        let direct = |block: &str| ("sequential write".to_string(), format!("{block}, dd, to the device"), 1000.0);
        assert_eq!(figures(&text), [direct("512 B"), direct("4 KiB")]);
        // The next copy of a command without a loop is of another one.
        let names: Vec<String> = figures(&text.replace("for bs in 512 4k; do ", "").replace("; done", "").replace("$bs", "4k"))
            .into_iter()
            .map(|f| f.0)
            .collect();
        assert_eq!(names, ["sequential write", "sequential, read or written"]);
        let raw = "$ sudo dd if=/dev/zero of=/dev/rdisk2 bs=1m count=2\n2097152 bytes transferred in 2.0 secs (1048576 bytes/sec)\n";
        assert_eq!(figures(raw)[0].1, "1 MiB, dd, to the device");
        assert_eq!(figures(&raw.replace("rdisk", "disk"))[0].1, "1 MiB, dd, through the page cache");
        let named = "bs=4k: 4096000 bytes (4.1 MB) copied, 3.4 s, 1.2 MB/s\nbs=64k: 65536000 bytes (66 MB) copied, 7.4 s, 8.9 MB/s\n";
        let blocks: Vec<String> = figures(named).into_iter().map(|f| f.1).collect();
        assert_eq!(blocks, ["4 KiB, dd", "64 KiB, dd"]);
    }

    #[test]
    fn what_is_cut_off_or_edited_is_said() {
        let cut = read("dd if=/dev/zero of=/dev/sdb bs=1M\n85983232 bytes (86 MB, 82 MiB) copied, 4 s, 21.4 MB/s").unwrap().unwrap();
        assert!(cut.notes[0].contains("cut off"), "{:?}", cut.notes);
        let edited = read("8+0 records in\n8+0 records out\n8388608 bytes (8.4 MB) copied, 1 s, 84 MB/s").unwrap().unwrap();
        assert!(edited.flags[0].contains("8389 kB/s, but it says 84000"), "{:?}", edited.flags);
        assert!(read("8+0 records in\n8+0 records out\n").unwrap().is_err());
        // A single line, as `2>&1 | tail -1` leaves it, is the end of a copy: only one of whole seconds may be progress.
        let end = "104857600 bytes (105 MB, 100 MiB) copied, 10.0 s, 10.5 MB/s\n";
        let cut = |text: &str| read(text).unwrap().unwrap().notes.iter().any(|n| n.contains("cut off"));
        let progress = "41943040 bytes (42 MB, 40 MiB) copied, 4 s, 10.5 MB/s\r83886080 bytes (84 MB, 80 MiB) copied, 8 s, 10.5 MB/s";
        let earlier = "41943040 bytes (42 MB) copied, 4.001 s, 10.5 MB/s\n83886080 bytes (84 MB) copied, 8.002 s, 10.5 MB/s";
        for (text, is) in [
            (end.to_string(), false),
            (end.replace("10.0 s", "10 s"), true),
            (progress.into(), true),
            (progress.replace('\r', "\n"), true),
            (earlier.into(), true),
            (format!("{progress}\n{end}"), false),
            (format!("{end}{end}"), false),
        ] {
            assert_eq!(cut(&text), is, "{text}");
        }
        // Each is one pass.
        let two =
            format!("{end}$ dd if=/dev/zero of=/dev/sdb bs=1M count=100 2>&1 | tail -1\n{end}dd if=/dev/zero of=/dev/sdb bs=1M\n{end}");
        let names: Vec<String> = figures(&two).into_iter().map(|f| f.0).collect();
        assert_eq!(names, ["sequential, read or written", "sequential write", "sequential write"]);
        assert_eq!(figures(&format!("{end}{end}")).len(), 2);
        assert!(read("sequential writes of 8 bytes were copied").is_none());
    }

    #[test]
    fn what_hdparm_prints() {
        let text = "/dev/mmcblk0:\n Timing cached reads:   1016 MB in  2.00 seconds = 507.68 MB/sec\n \
            Timing buffered disk reads:  62 MB in  3.06 seconds =  20.26 MB/sec\n";
        assert_eq!(figures(text), [("sequential read".into(), "hdparm, through the page cache".into(), 21245.7)]);
        assert!(read(text).unwrap().unwrap().flags.is_empty());
        // What contradicts itself is said, not repaired.
        let edited = read("Timing buffered disk reads: 64 MB in 3.02 seconds = 99.19 MB/sec").unwrap().unwrap();
        assert_eq!(edited.flags, ["hdparm: 64 MB in 3.02 s are 22221 kB/s, but it says 104008"]);
        for row in ["2 MB in  3.10 seconds = 660.65 kB/sec", "130 MB in  3.01 seconds =  43.19 MB/sec", "64 MB in 3.02 seconds"] {
            assert!(read(&format!(" Timing O_DIRECT disk reads: {row}")).unwrap().unwrap().flags.is_empty(), "{row}");
        }
        assert!(read("/dev/sdb:\n Timing cached reads:   1016 MB in  2.00 seconds = 507.68 MB/sec\n").unwrap().is_err());
    }
}
