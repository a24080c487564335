//! The conditions of the procedures: which were met, which were not, and which cannot be known from a host.

use super::measure::{Measured, RANDOM_S, SEQUENTIAL, WINDOW};
use super::{Condition, State};
use crate::host::class::{Class, Family, is_xc};
use crate::units::{Bytes, GIB};
use std::path::Path;

/// What is known of the way to the card.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Clock and bus mode as the kernel shows them.
    pub bus: Option<String>,
    /// A simulated card, which has neither.
    pub simulated: bool,
    /// Timed writes include a flush.
    pub flushes: bool,
    /// Commands in flight in the queued test.
    pub depth: u32,
    /// The whole procedure was asked for.
    pub whole: bool,
    /// Where the tables were taken to lie.
    pub formatted: bool,
    pub capacity: u64,
}

/// Clock, bus width and timing of an SD card in a slot of its own, where the kernel shows them (debugfs).
pub fn bus(root: &Path, disk: &str) -> Option<String> {
    let host = disk.strip_prefix("mmcblk").map(|n| format!("mmc{n}"))?;
    let text = std::fs::read_to_string(root.join("kernel/debug").join(host).join("ios")).ok()?;
    let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.trim_start().strip_prefix(':').map(|v| v.trim().to_string()));
    let all: Vec<String> =
        ["actual clock", "bus width", "timing spec"].into_iter().filter_map(|k| Some(format!("{k} {}", value(k)?))).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// All conditions of these classes, with what became of them.
pub fn conditions(classes: &[Class], m: &Measured, way: &Way) -> Vec<Condition> {
    let mut out: Vec<Condition> = vec![];
    let of = |pick: &dyn Fn(&Class) -> bool| classes.iter().filter(|c| pick(c)).map(|c| c.name.clone()).collect::<Vec<_>>();
    let mut add = |what: &str, state: State, because: String, of: Vec<String>| {
        if !of.is_empty() {
            out.push(Condition { what: what.into(), state, because, of });
        }
    };
    let done = |yes: bool| if yes { State::Met } else { State::NotMet };
    let sequential = |c: &Class| c.family() != Family::Application;
    let application = |c: &Class| c.family() == Family::Application;
    let commanded = |c: &Class| matches!(c.family(), Family::Uhs | Family::Video) || c.family() == Family::Speed && is_xc(way.capacity);
    add(
        "speed class control (CMD20)",
        State::NotMet,
        "without CMD20: a host cannot send it through the block layer".into(),
        of(&commanded),
    );
    let (state, text) = match (&way.bus, way.simulated) {
        (Some(bus), _) => {
            (State::NotKnowable, format!("{bus}; whether the card was in the mode of its class is for the reader to compare"))
        }
        (None, true) => (State::NotKnowable, "a simulated card has no bus; its host is in the model".into()),
        (None, false) => (State::NotKnowable, "the reader does not show them".into()),
    };
    add("clock and bus mode", state, text, of(&|_| true));
    add("power that the card may take", State::NotKnowable, "a host cannot measure it".into(), of(&|_| true));
    let units: (u64, u64) = m.stretches.iter().fold((0, 0), |(a, b), s| (a + s.units.len() as u64, b + s.of));
    let every = units.0 == units.1 && units.1 > 0;
    // What is true of one unit in twenty is missed by chance.
    let missed = 100.0 * 0.95f64.powf(units.0 as f64);
    let text = if units.0 == 0 {
        "none was written".to_string()
    } else if every {
        format!("all {} of the region", units.1)
    } else {
        format!("{} of {}; if one in twenty were slow, {missed:.0} of 100 such runs would see none of them", units.0, units.1)
    };
    add("every AU or sub-unit", done(every), text, of(&sequential));
    let erased = !m.stretches.is_empty() && m.stretches.iter().all(|s| s.erased);
    let text = if units.0 == 0 {
        "none was written"
    } else if erased {
        "discarded before"
    } else {
        "the target takes no discards; AUs in use were overwritten"
    };
    add("free AUs", done(erased), text.into(), of(&sequential));
    let text = if way.flushes { "one request after the other, each with a flush" } else { "one request after the other, each waited for" };
    add("bus busy all the time", done(!way.flushes), text.into(), of(&sequential));
    let text = if way.formatted {
        "FAT cycles go where a card formatted by the SD rules has its tables"
    } else {
        "the region does not hold the places of the tables; its first bytes stand for them"
    };
    add("card formatted by the SD rules", done(way.formatted), text.into(), of(&sequential));
    let plain = m.random.first();
    let filled = plain.map_or(0, |r| r.filled);
    let least = way.capacity / 4 * 3 / 20 * 19;
    let text = format!("{} were filled before", Bytes(filled / GIB * GIB));
    add("card erased, then 75 % filled", done(filled >= least && filled > 0), text, of(&application));
    let window = plain.map_or(0, |r| r.window);
    add("a window of 256 MiB, written sequentially before", done(window >= WINDOW), format!("{} were", Bytes(window)), of(&application));
    let seconds = |parts: &[super::measure::Part]| parts.iter().map(|p| p.seconds).sum::<f64>();
    let times = plain.map_or([0.0, 0.0], |r| [seconds(&r.writes), seconds(&r.reads)]);
    add(
        "10 minutes of random writes, then 10 of random reads over the same window",
        done(times.iter().all(|t| *t >= 0.95 * RANDOM_S)),
        format!("{:.0} s and {:.0} s", times[0], times[1]),
        of(&application),
    );
    let c = &m.contiguous;
    let whole = c.len * c.seconds.len() as u64 >= SEQUENTIAL;
    let text = format!("{} written, {} of the card filled before", Bytes(c.len * c.seconds.len() as u64), Bytes(c.filled / GIB * GIB));
    add("the card filled, then 1 GiB written in pieces of 4 MiB", done(whole && c.filled > 0), text, of(&application));
    let queued = m.random.iter().any(|r| r.depth > 1);
    let text = if queued {
        format!("{} requests in flight; whether the kernel hands them to the card's queue is not known", way.depth)
    } else {
        "one request at a time".into()
    };
    add(
        "command queue in voluntary mode, and the card's cache on",
        if queued { State::NotKnowable } else { State::NotMet },
        text,
        of(&|c| c.queued),
    );
    let told = "a host cannot see whether the card was told";
    add("power-off notification", State::NotKnowable, told.into(), of(&|c| c.queued));
    out
}

/// What the run cannot promise, the quick one more than the whole.
pub fn not_promised(m: &Measured, whole: bool) -> Vec<String> {
    let genuine = "a counterfeit may pass: what was written is not read back (`nandscope check` does that)".to_string();
    if whole {
        return vec![genuine];
    }
    let mut out = vec![
        genuine,
        "a card that slows down after more has been written, or when it is full, may pass here and fail the whole procedure".to_string(),
    ];
    if m.stretches.iter().any(|s| (s.units.len() as u64) < s.of) {
        out.push("AUs that were not tried may be slower".into());
    }
    if m.random.iter().any(|r| r.filled == 0) {
        out.push("random accesses on a card that is three quarters full, over ten minutes, may be slower".into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_shows_of_the_bus() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("kernel/debug/mmc0");
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(
            at.join("ios"),
            "clock:\t\t50000000 Hz\nactual clock:\t50000000 Hz\nbus width:\t2 (4 bits)\ntiming spec:\t2 (sd high-speed)\n",
        )
        .unwrap();
        assert_eq!(bus(dir.path(), "mmcblk0").unwrap(), "actual clock 50000000 Hz, bus width 2 (4 bits), timing spec 2 (sd high-speed)");
        assert!(bus(dir.path(), "sda").is_none() && bus(dir.path(), "mmcblk1").is_none());
    }

    #[test]
    fn every_class_has_conditions_and_none_is_claimed_without_a_measurement() {
        let classes: Vec<Class> = Class::NAMES.iter().map(|n| Class::by_name(n).unwrap()).collect();
        let all = conditions(&classes, &Measured::default(), &Way { flushes: true, capacity: 60 * GIB, ..Way::default() });
        assert!(Class::NAMES.iter().all(|n| all.iter().any(|c| c.of.iter().any(|o| o == n))));
        assert!(all.iter().all(|c| c.state != State::Met), "{all:?}");
        assert!(all[0].because.contains("without CMD20"));
    }
}
