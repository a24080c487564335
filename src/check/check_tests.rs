//! Cards whose faults are known, in virtual time.

use super::examine::{Examined, Order, examine};
use super::judge::{Class, Seen, agreed, answers};
use super::measure::{Measured, Placed, Task, WINDOW, measure};
use super::{Answer, Outcome, Question, Verdict};
use crate::device::{Access, Device, Geometry, Op, Result, SimDevice, Timed};
use crate::finding::{Findings, Quantity};
use crate::host::faults::{Ext4, Lines, Noticed, Trouble};
use crate::host::wear::{Reading, Written};
use crate::saved::counterfeit::genuine;
use crate::units::{MIB, Nanos};
use crate::workload::purpose::Purpose;
use nandscope_sim::model::{Beyond, Keeps};
use nandscope_sim::{Model, cards, random};
use std::sync::atomic::AtomicBool;

pub(super) fn model(name: &str) -> Model {
    Model::parse(cards::text(name).unwrap(), name).unwrap()
}

pub(super) struct Checked {
    pub answers: Vec<Answer>,
    pub outcome: Outcome,
    pub measured: Measured,
    findings: Findings,
}

pub(super) fn check(m: &Model, seed: u64, write: bool, classes: &[Class]) -> Checked {
    check_for(m, seed, write, classes, None)
}

pub(super) fn check_for(m: &Model, seed: u64, write: bool, classes: &[Class], purpose: Option<&Purpose>) -> Checked {
    check_device(&mut SimDevice::new(m, seed).with_content(), seed, classes, purpose, write)
}

fn check_device(device: &mut dyn Device, seed: u64, classes: &[Class], purpose: Option<&Purpose>, write: bool) -> Checked {
    let examined = examined(device, seed, 90.0, write, false);
    let noticed = Noticed::default();
    let answers = answers(&Seen { write, classes, purpose, ..Seen::of(device.geometry().size, &examined, &noticed) });
    let findings = agreed(examined.findings, device.geometry().size, &answers);
    Checked { outcome: Outcome::of(&answers), answers, measured: examined.measured, findings }
}

/// All of a device, within so many seconds.
pub(super) fn examined(device: &mut dyn Device, seed: u64, seconds: f64, write: bool, put_back: bool) -> Examined {
    let (stop, region, time) = (AtomicBool::new(false), 0..device.geometry().size, Nanos::from_secs_f64(seconds));
    let order = Order { region, write, time, put_back, seed, stop: &stop, window: WINDOW, reinsert: None };
    examine(device, &order, &mut |_| {}).unwrap()
}

pub(super) fn verdict(c: &Checked, q: Question) -> Verdict {
    c.answers.iter().find(|a| a.question == q).unwrap().verdict
}

#[test]
fn healthy_cards_pass_and_none_is_accused() {
    for name in ["flashbench-readme", "modern-a1-32gb", "toshiba-emmc", "usb-stick"] {
        let c = check(&model(name), 1, true, &[]);
        assert_eq!(c.outcome, Outcome::Fine, "{name}: {:?}", c.answers);
        let c = check(&model(name), 2, false, &[]);
        assert_eq!(c.outcome, Outcome::NotKnown, "{name}: {:?}", c.answers);
        assert_eq!(c.measured.writes, 0);
    }
    for seed in 100..112 {
        let m = random::card(seed);
        let fake = m.truth().real_capacity < m.card.capacity;
        let c = check(&m, seed, true, &[]);
        let accused = matches!(c.outcome, Outcome::Counterfeit | Outcome::Failing);
        assert!(fake || !accused, "random card {seed}: {:?}", c.answers);
    }
}

/// Whatever a file passes, the card it came from may be anything; what a file fails, it fails.
#[test]
fn an_image_file_says_nothing_of_a_card() {
    use super::judge::of_image;
    for (name, write) in [("modern-a1-32gb", true), ("modern-a1-32gb", false), ("toshiba-emmc", true)] {
        let answers = of_image(check(&model(name), 1, write, &[Class::by_name("A1").unwrap()]).answers);
        assert_eq!(Outcome::of(&answers), Outcome::NotKnown, "{name} {write}: {answers:?}");
        assert!(answers[0].because.contains("image file") && answers[0].todo.is_some(), "{answers:?}");
    }
    for (name, outcome) in [("fake-wrap-32gb", Outcome::Counterfeit), ("modern-a1-32gb", Outcome::Failing)] {
        let mut m = model(name);
        (m.card.keeps, m.card.fails_every) = (if outcome == Outcome::Failing { Keeps::Zeros } else { Keeps::All }, 16);
        assert_eq!(Outcome::of(&of_image(check(&m, 1, true, &[]).answers)), outcome, "{name}");
    }
}

/// The same of a loop device over a file, which is named.
#[test]
fn a_loop_device_says_nothing_of_a_card() {
    use super::judge::of_loop;
    let answers = of_loop(check(&model("modern-a1-32gb"), 1, true, &[]).answers, "/home/me/card.img");
    assert_eq!(Outcome::of(&answers), Outcome::NotKnown, "{answers:?}");
    assert!(answers[0].because.starts_with("this is a loop device over the file /home/me/card.img, "), "{answers:?}");
    let fake = check(&model("fake-wrap-32gb"), 1, true, &[]).answers;
    assert_eq!(Outcome::of(&of_loop(fake, "/x")), Outcome::Counterfeit);
}

#[test]
fn one_read_is_one_read() {
    use super::judge::of_interrupted;
    let c = check(&model("modern-a1-32gb"), 1, false, &[]);
    let cut = Measured { reads: 1, writes: 0, ended: Some("interrupted".into()), ..c.measured };
    let said = of_interrupted(c.answers, &cut).into_iter().find(|a| a.question == Question::Errors).unwrap().because;
    assert_eq!(said, "interrupted after 1 read and 0 writes, none of which failed");
}

#[test]
fn counterfeits_are_named() {
    for (name, real) in [("fake-wrap-32gb", 4096), ("fake-drop-64gb", 8192), ("fake-error-16gb", 2048)] {
        let c = check(&model(name), 1, true, &[]);
        assert_eq!((c.outcome, c.outcome.exit_code()), (Outcome::Counterfeit, 6), "{name}: {:?}", c.answers);
        assert_eq!(verdict(&c, Question::Stores), Verdict::Pass, "{name}: what it has it keeps: {real} MiB");
    }
    // Errors behind the flash show without writing; whether a border or a bad place is said by what lies behind.
    let mut m = model("modern-a1-32gb");
    (m.card.real_capacity, m.card.beyond) = (3000 * MIB, Beyond::Error);
    let c = check(&m, 1, false, &[]);
    assert_eq!(c.outcome, Outcome::Counterfeit, "{:?}", c.answers);
}

/// A card whose addresses repeat behind its first bytes, where the tables of a filesystem lie.
struct Repeats {
    card: SimDevice,
    /// First byte and length of what repeats.
    from: u64,
    period: u64,
}

impl Repeats {
    fn place(&self, at: u64) -> u64 {
        if at < self.from { at } else { self.from + (at - self.from) % self.period }
    }
}

impl Device for Repeats {
    fn geometry(&self) -> &Geometry {
        self.card.geometry()
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        let at = self.place(a.at);
        let timed = self.card.access(Access { at, ..a })?;
        if let Op::Write(fill) = a.op {
            let mut bytes = vec![0; a.len as usize];
            fill.render(a.at, &mut bytes);
            self.card.store(at, &bytes)?;
        }
        Ok(timed)
    }

    fn now(&self) -> Nanos {
        self.card.now()
    }

    fn idle(&mut self, d: Nanos) {
        self.card.idle(d)
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.card.load(self.place(at), into)
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.card.store(self.place(at), from)
    }
}

/// The stretch near the front that the test of the capacity looks for is not repeated: what was written in the window is.
#[test]
fn addresses_that_repeat_behind_a_front_that_is_kept_are_found() {
    for (name, from, part) in [("modern-a1-32gb", 400, 0.11), ("modern-a1-32gb", 1000, 0.33), ("flashbench-readme", 300, 0.45)] {
        let card = SimDevice::new(&model(name), 1).with_content();
        let size = card.geometry().size;
        let period = (size as f64 * part) as u64 / MIB * MIB;
        let c = check_device(&mut Repeats { card, from: from * MIB, period }, 1, &[], None, true);
        assert_eq!(c.outcome, Outcome::Counterfeit, "{name}, {from} MiB kept: {:?}", c.answers);
        assert_ne!(genuine(&c.findings, size), Some(true), "{name}, {from} MiB kept: {:?}", c.findings.get(Quantity::Capacity));
        let found = c.measured.repeats_after();
        assert!(found.is_none_or(|p| p % period == 0), "{name}, {from} MiB kept: {found:?}, really {period}");
        let there = c.measured.repeating();
        let real = from * MIB + period;
        assert!(there.is_none_or(|(least, most)| least <= real && real <= most), "{name}, {from} MiB kept: {there:?}, really {real}");
    }
}

/// Lost data are no matter of how much of the card is lost.
#[test]
fn a_card_that_lost_its_end_does_not_pass() {
    for missing in [100, 300, 1000] {
        let mut m = model("modern-a1-32gb");
        (m.card.real_capacity, m.card.beyond) = (m.card.capacity - missing * MIB, Beyond::Drop);
        let c = check(&m, 1, true, &[]);
        assert!(matches!(c.outcome, Outcome::Counterfeit | Outcome::Failing), "{missing} MiB: {:?}", c.answers);
    }
}

/// Every way to fail in silence, in all of the flash and in one piece of 16 and of 200.
#[test]
fn cards_that_do_not_store_what_they_are_told() {
    for keeps in [Keeps::Old, Keeps::Zeros, Keeps::Shifted, Keeps::Changing] {
        for (every, name) in [(1, "modern-a1-32gb"), (16, "flashbench-readme"), (200, "modern-a1-32gb")] {
            let mut m = model(name);
            (m.card.keeps, m.card.fails_every) = (keeps, every);
            let c = check(&m, every, true, &[]);
            // A card that keeps nothing at all may look like one without flash.
            let expected: &[Outcome] = if every == 1 { &[Outcome::Failing, Outcome::Counterfeit] } else { &[Outcome::Failing] };
            assert!(expected.contains(&c.outcome), "{keeps:?} 1/{every}: {:?}", c.answers);
            let f = &c.measured.fates;
            let shown = match keeps {
                Keeps::Old => f.old + f.zeros,
                Keeps::Zeros => f.zeros,
                Keeps::Shifted => f.another.len() as u64 + f.zeros + f.old,
                _ => f.changing + f.garbage,
            };
            assert!(every == 1 || shown > 0, "{keeps:?} 1/{every}: {f:?}");
        }
    }
    // Without a write, what changes from reading to reading shows all the same.
    let mut m = model("modern-a1-32gb");
    (m.card.keeps, m.card.fails_every) = (Keeps::Changing, 3);
    assert_eq!(check(&m, 1, false, &[]).outcome, Outcome::Failing);
}

#[test]
fn classes_are_judged_by_the_interval() {
    let a1 = [Class::by_name("a1").unwrap()];
    let c = check(&model("modern-a1-32gb"), 1, true, &a1);
    assert_eq!(verdict(&c, Question::Speed), Verdict::Pass, "{:?}", c.answers);
    // An old card writes 4 KiB at random at a few IOPS, and reads sequentially much faster than the limit.
    let c = check(&model("toshiba-emmc"), 1, true, &a1);
    assert_eq!((verdict(&c, Question::Speed), c.outcome.exit_code()), (Verdict::Fail, 8), "{:?}", c.answers);
    // Without writes no class that asks for writes is passed.
    assert_eq!(verdict(&check(&model("modern-a1-32gb"), 1, false, &a1), Question::Speed), Verdict::NotKnown);
    // A2 is measured with a queue.
    let a2 = [Class::by_name("A2").unwrap()];
    assert_eq!(verdict(&check(&model("modern-a1-32gb"), 1, true, &a2), Question::Speed), Verdict::NotKnown);
    assert!(Class::by_name("A3").is_err() && Class::by_name("").is_err());
}

#[test]
fn a_history_names_what_changed() {
    use super::history::Record;
    let a = check(&model("modern-a1-32gb"), 1, true, &[]);
    let before = Record::of(1, a.outcome, &a.answers, &a.measured);
    assert_eq!(before.changes(&before), Vec::<String>::new());
    let mut slow = before.clone();
    for r in slow.rates.values_mut() {
        *r = r.map(|x| x / 2.0);
    }
    slow.verdicts.insert("errors".into(), "FAIL".into());
    let changes = before.changes(&slow);
    assert_eq!(changes.len(), 5, "{changes:?}");
    assert!(changes[0].contains("was pass, is FAIL") && changes[1].contains("2.00 times slower"), "{changes:?}");
    // A test that was left out says nothing of the card.
    slow.verdicts.insert("errors".into(), "not known".into());
    assert_eq!(before.changes(&slow).len(), 4);
}

/// What was asked, and how it was measured, is no change of the card.
#[test]
fn a_history_does_not_take_another_question_for_a_change() {
    use super::history::Record;
    let a = check(&model("modern-a1-32gb"), 1, true, &[]);
    let before = Record::of(1, a.outcome, &a.answers, &a.measured).against(Some("camera"), &["A1".into()]);
    let mut now = before.clone().against(Some("video-4k"), &["V30".into()]);
    let put = |r: &mut Record, q: Question, word: &str| r.verdicts.insert(q.title().into(), word.into());
    let mut was = before.clone();
    for q in [Question::Purpose, Question::Speed] {
        put(&mut was, q, "pass");
        put(&mut now, q, "FAIL");
    }
    assert_eq!(was.changes(&now), Vec::<String>::new());
    assert_eq!(was.changes(&now.clone().against(Some("camera"), &["A1".into()])).len(), 2);
    // A rate of other requests, or of far fewer; and one that hosts alone explain.
    let slower = |by: f64, len: u64, requests: u64| {
        let mut r = before.clone();
        r.rates.values_mut().for_each(|v| *v = v.map(|x| x / by));
        r.requests.values_mut().for_each(|n| *n = [n[0] / len, n[1] / requests]);
        before.changes(&r).len()
    };
    assert_eq!([slower(2.0, 1, 1), slower(2.0, 2, 1), slower(2.0, 1, 4), slower(1.12, 1, 1)], [4, 0, 0, 0]);
}

/// Where the old content is put back, the check ends earlier by about as long as its first writes took.
#[test]
fn putting_back_is_part_of_the_time() {
    for name in ["olpc-c-8gb", "sdxc-64gb", "chan-sdc-512mb"] {
        let seconds = |put_back: bool| {
            let mut device = SimDevice::new(&model(name), 1).with_content();
            let examined = examined(&mut device, 1, 90.0, true, put_back);
            assert!(examined.measured.written > 0, "{name}: {:?}", examined.measured);
            device.now().secs()
        };
        let (with, without) = (seconds(true), seconds(false));
        assert!(with < 0.9 * without && with < 80.0 && without < 95.0, "{name}: {with} s with putting back, {without} s without");
    }
}

/// Where the time ends the search for the capacity, the way on is named once, with the target.
#[test]
fn a_search_that_was_cut_names_its_command() {
    let mut device = SimDevice::new(&model("olpc-c-8gb"), 1).with_content();
    let (size, mut examined) = (device.geometry().size, examined(&mut device, 1, 8.0, true, false));
    let (with_writes, noticed) = ("/dev/mmcblk0 --write --consent 7", Noticed::default());
    crate::saved::counterfeit::name_target(&mut examined.findings, with_writes);
    let a = answers(&Seen { with_writes, ..Seen::of(size, &examined, &noticed) }).remove(0);
    let todo = a.todo.unwrap();
    assert_eq!(a.verdict, Verdict::NotKnown);
    assert!(todo.contains(&format!("nandscope run capacity {with_writes}")) && !a.because.contains("nandscope"), "{}: {todo}", a.because);
}

/// A cache may have kept the places of the test of the capacity, where all else is lost and they were not read again.
#[test]
fn a_capacity_is_not_passed_on_places_read_at_once_where_writes_are_lost() {
    let m = model("usb-stick");
    let mut device = SimDevice::new(&m, 1).with_content();
    let (size, mut examined) = (device.geometry().size, examined(&mut device, 1, 90.0, true, false));
    let noticed = Noticed::default();
    let capacity = |e: &Examined| answers(&Seen::of(size, e, &noticed)).remove(0).verdict;
    examined.measured.fates.zeros = 5;
    assert_eq!(capacity(&examined), Verdict::Pass);
    (examined.measured.later.kept, examined.measured.later.recent) = Default::default();
    assert_eq!(capacity(&examined), Verdict::NotKnown);
    examined.measured.fates.zeros = 0;
    assert_eq!(capacity(&examined), Verdict::Pass);
}

#[test]
fn what_the_system_noticed_is_part_of_the_answer() {
    let mut device = SimDevice::new(&model("modern-a1-32gb"), 1).with_content();
    let (stop, size) = (AtomicBool::new(false), device.geometry().size);
    let deadline = Nanos::from_secs_f64(20.0);
    let task = Task {
        region: 0..size,
        write: false,
        deadline,
        put_back: None,
        seed: 1,
        stop: &stop,
        window: WINDOW,
        placed: &Placed::default(),
        reinsert: None,
    };
    let measured = measure(&mut device, &task, &mut |_, _| {});
    let examined = Examined { findings: Findings::default(), broken: None, measured };
    let judge = |noticed: &Noticed| {
        let seen = Seen { write: false, ..Seen::of(size, &examined, noticed) };
        answers(&seen).into_iter().find(|a| a.question == Question::Errors).unwrap()
    };
    assert_eq!(judge(&Noticed::default()).verdict, Verdict::Pass);
    let line = |trouble| Noticed { log: vec![Lines { trouble, count: 2, last: "a line".into() }], ..Noticed::default() };
    assert_eq!(judge(&line(Trouble::Io)).verdict, Verdict::Fail);
    // What the bus or a file system met may have another cause: said, and nobody is accused.
    for trouble in [Trouble::Bus, Trouble::FileSystem] {
        let a = judge(&line(trouble));
        assert!(a.verdict == Verdict::Pass && a.because.contains("2 lines"), "{a:?}");
    }
    let ext4 = Ext4 { device: "mmcblk0p2".into(), errors: 7, first: None, last: None, noticed_by: None };
    let a = judge(&Noticed { ext4: vec![ext4], ..Noticed::default() });
    assert!(a.verdict == Verdict::Pass && a.because.contains("counts 7 errors") && a.todo.is_some(), "{a:?}");
}

#[test]
fn a_history_counts_what_the_card_counts() {
    use super::history::Record;
    let c = check(&model("modern-a1-32gb"), 1, false, &[]);
    let (size, superblock, blocks) = (32_000_000_000u64, 32u64 << 20, 1016u64);
    let record = |written: u64, erases: u64, bad: u64, errors: u64| {
        let reading = Reading {
            total_erases: Some(erases),
            mean_erases: Some((erases / blocks) as f64),
            grown_bad_blocks: Some(bad),
            life_left_percent: Some(100.0 - erases as f64 / blocks as f64 / 100.0),
            ..Reading::default()
        };
        let written = Some(Written { since: "boot:7".into(), bytes: written });
        let ext4 = vec![Ext4 { device: "mmcblk0p2".into(), errors, first: None, last: None, noticed_by: None }];
        Record::of(1, c.outcome, &c.answers, &c.measured).with(Some(reading), written, &Noticed { ext4, ..Noticed::default() })
    };
    // 100 GB were written, and 250 GB reached the flash.
    let before = record(0, 40 * blocks, 1, 0);
    let mut now = record(100_000_000_000, 40 * blocks + 250_000_000_000 / superblock, 3, 5);
    now.weigh(&before, size);
    let text = before.changes(&now).join("\n");
    assert!(text.contains("bad blocks since the factory: was 1, is 3") && text.contains("ext4 counts on mmcblk0p2: was 0, is 5"), "{text}");
    let [low, high] = now.wear.unwrap().amplification.unwrap();
    assert!(low < 2.5 && high > 2.5 && high / low < 1.3, "{low} to {high}: {text}");
    assert!(text.contains("write amplification, counted over 93.1 GiB") && text.contains("superblock"), "{text}");
    // A check in between that writes nothing keeps it and says nothing new; so does one after another boot.
    let mut later = Record { written: Some(Written { since: "boot:8".into(), bytes: 5 }), wear: None, ..now.clone() };
    later.weigh(&now, size);
    assert_eq!(later.wear.and_then(|w| w.amplification), now.wear.and_then(|w| w.amplification));
    // Records of before are read as they are.
    let mut old = serde_json::to_value(&now).unwrap();
    ["reading", "written", "wear", "file_system_errors"].iter().for_each(|k| drop(old.as_object_mut().unwrap().remove(*k)));
    assert!(serde_json::from_value::<Record>(old).unwrap().reading.is_none());
}

/// What a check left on a card that keeps nothing any more is not what the next one wrote.
#[test]
fn two_checks_write_different_stamps() {
    let m = model("modern-a1-32gb");
    let mut device = SimDevice::new(&m, 1).with_content();
    let stop = AtomicBool::new(false);
    let mut numbers = vec![];
    for _ in 0..2 {
        let deadline = device.now() + Nanos::from_secs_f64(20.0);
        let size = device.geometry().size;
        let placed = Placed::default();
        let task = Task {
            region: 0..size,
            write: true,
            deadline,
            put_back: None,
            seed: 1,
            stop: &stop,
            window: WINDOW,
            placed: &placed,
            reinsert: None,
        };
        let done = measure(&mut device, &task, &mut |_, _| {});
        let mut sector = vec![0; 512];
        device.load(done.window[1] - 512, &mut sector).unwrap();
        numbers.push(crate::device::fill::read_stamp(&sector).unwrap().1);
    }
    assert_ne!(numbers[0], numbers[1]);
}

/// A card that shows what was written beside its place fails; it is no card of a few KiB.
#[test]
fn content_beside_its_place_is_no_size() {
    let mut m = model("modern-a1-32gb");
    m.card.keeps = Keeps::Shifted;
    let c = check(&m, 1, true, &[]);
    assert_eq!(c.outcome, Outcome::Failing, "{:?}", c.answers);
    assert_eq!(verdict(&c, Question::Capacity), Verdict::NotKnown, "{:?}", c.answers);
}

#[test]
fn a_card_that_takes_no_more_writes_is_called_so() {
    let read_only = |after: &str| {
        let text = cards::text("modern-a1-32gb").unwrap();
        Model::parse(&format!("{text}\n[[fault]]\nkind = \"read-only\"\n{after}\n"), "x").unwrap()
    };
    let errors = |c: &Checked| c.answers.iter().find(|a| a.question == Question::Errors).unwrap().because.clone();
    let c = check(&read_only("after_bytes = \"20 MiB\""), 1, true, &[]);
    assert!(c.outcome == Outcome::Failing && errors(&c).starts_with("it takes no more writes: the last"), "{:?}", c.answers);
    let c = check(&read_only("after_commands = 1"), 1, true, &[]);
    assert!(c.outcome == Outcome::Failing && errors(&c).starts_with("it takes no writes: all"), "{:?}", c.answers);
}
