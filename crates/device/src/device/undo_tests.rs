use super::super::consent::Consent;
use super::super::fake::Fake;
use super::super::guard::{Guard, Limits};
use super::super::{Access, Fill};
use super::*;
use crate::host::facts::TargetKind;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

#[path = "undo_cut_tests.rs"]
mod cut;

const SIZE: u64 = 4 * MIB;

fn id() -> TargetId {
    TargetId { path: "fake".into(), kind: TargetKind::Simulated, serial: None, model: None, size: SIZE, offset: 0 }
}

fn guarded(dir: &Path) -> (Guard, Arc<Mutex<Vec<u8>>>) {
    let fake = Fake::new(SIZE);
    let bytes = fake.bytes.clone();
    let limits = Limits { region: None, budget: u64::MAX, undo: Some(dir.to_path_buf()) };
    (Guard::writing(Box::new(fake), id(), &Consent::check(&id(), None).unwrap(), &limits).unwrap(), bytes)
}

fn write(at: u64, len: u64) -> Access {
    Access { op: Op::Write(Fill::Random(99)), at, len }
}

/// A run that wrote in three places (one of them zeros before), discarded one, and was killed.
fn killed(dir: &Path) -> (PathBuf, Fake, Vec<u8>) {
    let fake = Fake::new(SIZE);
    fake.bytes.lock().unwrap()[65536..131_072].fill(0);
    let (bytes, before) = (fake.bytes.clone(), fake.bytes.lock().unwrap().clone());
    let limits = Limits { region: None, budget: u64::MAX, undo: Some(dir.to_path_buf()) };
    let mut g = Guard::writing(Box::new(fake), id(), &Consent::check(&id(), None).unwrap(), &limits).unwrap();
    g.access(write(65536, 65536)).unwrap();
    g.access(write(4096, 8192)).unwrap();
    g.access(write(0, 8192)).unwrap();
    g.batch(&[write(200 * 512, 512), write(300 * 512, 512), Access { op: Op::Discard, at: MIB, len: 2 * MIB }], 1).unwrap();
    let path = g.journal().unwrap();
    drop(g);
    let mut left = Fake::new(SIZE);
    left.bytes = bytes;
    assert_ne!(*left.bytes.lock().unwrap(), before);
    (path, left, before)
}

#[test]
fn restore_puts_back_every_byte_and_deletes_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (mut g, bytes) = guarded(dir.path());
    let before = bytes.lock().unwrap().clone();
    for a in [write(512, 1024), write(1024, 4096), write(512, 512), write(MIB - 512, 2 * MIB)] {
        g.access(a).unwrap();
    }
    g.store(3 * MIB + MIB / 2, &[7; 4096]).unwrap();
    let path = g.journal().unwrap();
    assert!(path.exists());
    let restored = g.restore().unwrap().unwrap();
    // The union of what was written: 512..5120, 1 MiB - 512 .. 3 MiB - 512, and 4096 bytes.
    assert_eq!(restored, Restored { bytes: 4608 + 2 * MIB + 4096, ranges: 3, wraps_at: None });
    assert_eq!(*bytes.lock().unwrap(), before);
    assert!(!path.exists() && g.journal().is_none());
}

/// A counterfeit that wraps round holds what the run wrote to one address when the other is saved.
#[test]
fn two_addresses_of_one_place_get_the_oldest_content_back() {
    for later_first in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut fake = Fake::new(SIZE);
        fake.wraps = MIB;
        let (bytes, before) = (fake.bytes.clone(), fake.bytes.lock().unwrap().clone());
        let limits = Limits { region: None, budget: u64::MAX, undo: Some(dir.path().to_path_buf()) };
        let mut g = Guard::writing(Box::new(fake), id(), &Consent::check(&id(), None).unwrap(), &limits).unwrap();
        let mut all = [write(4096, 8192), write(MIB + 8192, 16384), write(3 * MIB + 4096, 4096), write(200 * 512, 512)];
        if later_first {
            all.reverse();
        }
        for a in all {
            g.access(a).unwrap();
        }
        assert_ne!(*bytes.lock().unwrap(), before);
        assert_eq!(g.restore().unwrap().unwrap().wraps_at, Some(MIB));
        assert!(*bytes.lock().unwrap() == before, "{later_first}");
        assert!(g.journal().is_none());
    }
}

/// The same on a blank card, whose old content is one byte repeated and says nothing of where it belongs.
#[test]
fn a_blank_counterfeit_is_undone_and_named() {
    for (period, blank, chain, down) in
        [(MIB, 0, false, false), (MIB, 0xff, true, false), (MIB / 2, 0, true, false), (MIB, 0, false, true), (MIB / 2, 0xff, true, true)]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut fake = Fake::new(SIZE);
        fake.wraps = period;
        fake.bytes.lock().unwrap().fill(blank);
        let bytes = fake.bytes.clone();
        let limits = Limits { region: None, budget: u64::MAX, undo: Some(dir.path().to_path_buf()) };
        let mut g = Guard::writing(Box::new(fake), id(), &Consent::check(&id(), None).unwrap(), &limits).unwrap();
        let fill = |at, len, seed| Access { op: Op::Write(Fill::Random(seed)), at, len };
        let mut all = vec![fill(4096, 8192, 1), fill(period + 8192, 16384, 2)];
        if chain {
            all.extend([fill(2 * period + 4096, 4096, 3), fill(3 * period + 4096, 8192, 4)]);
        }
        // The higher address first: the later record is the one of the lower.
        if down {
            all.reverse();
        }
        for a in all {
            g.access(a).unwrap();
        }
        assert!(bytes.lock().unwrap().iter().any(|b| *b != blank));
        let done = g.try_restore().unwrap().unwrap();
        assert_eq!((done.restored.wraps_at.map(|p| p % period), done.lost.len()), (Some(0), 0), "{period} {blank} {down}");
        assert!(bytes.lock().unwrap().iter().all(|b| *b == blank), "{period} {blank} {down}");
        assert!(g.journal().is_none());
    }
}

/// One bad place costs what is in it, and nothing else.
#[test]
fn the_other_ranges_are_put_back_where_one_fails() {
    for bad in [4096 + 700, 65536 + 40_000, 200 * 512, MIB + 5, 3 * MIB - 1] {
        let dir = tempfile::tempdir().unwrap();
        let (path, mut left, before) = killed(dir.path());
        left.bad = Some(bad);
        let saved = Saved::open(&path).unwrap();
        let done = saved.try_back(&mut left).unwrap();
        let lost: u64 = done.lost.iter().map(|l| l.len).sum();
        assert!(done.lost.iter().any(|l| (l.at..l.at + l.len).contains(&bad)) && lost <= 8192, "{bad}: {:?}", done.lost);
        assert_eq!(done.restored.bytes, saved.bytes() - lost);
        let now = left.bytes.lock().unwrap().clone();
        let inside = |i: u64| done.lost.iter().any(|l| (l.at..l.at + l.len).contains(&i));
        assert!((0..SIZE).all(|i| now[i as usize] == before[i as usize] || inside(i)), "{bad}: bytes beside the bad place");
        let told = done.loss(10);
        assert!(told[0].contains("does not keep what is written to it") && told[1].contains("failed: bad sector"), "{told:?}");
        assert!(matches!(saved.put_back(&mut left), Err(DeviceError::Io { op: "verification", .. })));
        // A better reader brings the rest.
        left.bad = None;
        assert_eq!(saved.try_back(&mut left).unwrap().lost, []);
        assert!(*left.bytes.lock().unwrap() == before, "{bad}");
    }
}

/// A card that refuses everything has gone: one error, soon, and the journal stays.
#[test]
fn a_card_that_has_gone_is_one_error() {
    struct Gone(Fake, u32);
    impl Device for Gone {
        fn geometry(&self) -> &crate::device::Geometry {
            self.0.geometry()
        }
        fn access(&mut self, a: Access) -> Result<crate::device::Timed> {
            self.0.access(a)
        }
        fn now(&self) -> crate::units::Nanos {
            self.0.now()
        }
        fn idle(&mut self, d: crate::units::Nanos) {
            self.0.idle(d)
        }
        fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
            self.0.load(at, into)
        }
        fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
            self.1 += 1;
            Err(DeviceError::Io { op: "write", at, len: from.len() as u64, source: std::io::Error::from_raw_os_error(19) })
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (path, left, _) = killed(dir.path());
    let mut gone = Gone(left, 0);
    let e = Saved::open(&path).unwrap().try_back(&mut gone).unwrap_err();
    assert!(matches!(e, DeviceError::Io { op: "write", .. }) && gone.1 < 40, "{e} after {} tries", gone.1);
    assert!(path.exists());
}

#[test]
fn what_a_card_lost_is_a_list_of_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut left, before) = killed(dir.path());
    left.deaf = true;
    let saved = Saved::open(&path).unwrap();
    let done = saved.try_back(&mut left).unwrap();
    let now = left.bytes.lock().unwrap().clone();
    let differ = |i: u64| now[i as usize] != before[i as usize];
    let inside = |i: u64| done.lost.iter().any(|l| (l.at..l.at + l.len).contains(&i));
    assert!((0..SIZE).all(|i| !differ(i) || inside(i)) && done.lost.len() > 2, "{:?}", done.lost);
    assert!(done.lost.windows(2).all(|w| w[0].at + w[0].len < w[1].at), "joined and in order: {:?}", done.lost);
    assert_eq!(done.loss(2).len(), 4, "{:?}", done.loss(2));
}

/// A card that answers with errors beyond its flash has samples nobody can read: the rest of it names the card.
#[test]
fn unreadable_samples_do_not_stop_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = Fake::new(SIZE);
    fake.ends = MIB;
    let bytes = fake.bytes.clone();
    let before = bytes.lock().unwrap().clone();
    let limits = Limits { region: None, budget: u64::MAX, undo: Some(dir.path().to_path_buf()) };
    let mut g = Guard::writing(Box::new(fake), id(), &Consent::check(&id(), None).unwrap(), &limits).unwrap();
    g.access(write(4096, 8192)).unwrap();
    assert!(matches!(g.access(write(2 * MIB, 4096)), Err(DeviceError::Io { op: "read", .. })), "what cannot be kept is not overwritten");
    let path = g.journal().unwrap();
    drop(g);
    let saved = Saved::open(&path).unwrap();
    assert!(saved.header.fingerprint.len() >= 4 && saved.header.unreadable.len() >= 10, "{:?}", saved.header);
    let mut left = Fake::new(SIZE);
    (left.bytes, left.ends) = (bytes.clone(), MIB);
    assert!(saved.matches(&mut left).unwrap());
    assert_eq!(saved.try_back(&mut left).unwrap().lost, []);
    assert!(*bytes.lock().unwrap() == before);
    let mut other = Fake::new(SIZE);
    Fill::Random(2).render(0, &mut other.bytes.lock().unwrap());
    other.ends = MIB;
    assert!(!saved.matches(&mut other).unwrap());
    let mut dead = Fake::new(SIZE);
    dead.ends = 0;
    assert!(saved.matches(&mut dead).is_err() && Journal::begin(dir.path(), &TargetId { size: 1, ..id() }, &mut dead).is_err());
}

/// What does not hold its content is no counterfeit: the journal stays.
#[test]
fn a_medium_that_loses_bytes_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = killed(dir.path()).0;
    let mut lies = Fake::new(SIZE);
    lies.lies = true;
    let e = Saved::open(&path).unwrap().put_back(&mut lies).unwrap_err();
    assert!(e.to_string().contains("does not hold what was put back"), "{e}");
    assert!(path.exists());
}

#[test]
fn a_killed_run_is_undone_from_the_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut left, before) = killed(dir.path());
    let saved = Saved::open(&path).unwrap();
    assert_eq!((saved.state, &saved.header.id), (State::Whole, &id()));
    assert!(saved.matches(&mut left).unwrap(), "what the run did not touch is the same");
    // The zeros take no room: the file is smaller than what it holds.
    assert!(saved.bytes() > 2 * MIB + 65536 && fs::metadata(&path).unwrap().len() < saved.bytes());
    saved.put_back(&mut left).unwrap();
    assert_eq!(*left.bytes.lock().unwrap(), before);
}

#[test]
fn another_card_of_the_same_size_does_not_match() {
    let dir = tempfile::tempdir().unwrap();
    let (path, left, _) = killed(dir.path());
    let saved = Saved::open(&path).unwrap();
    let mut other = Fake::new(SIZE);
    Fill::Random(2).render(0, &mut other.bytes.lock().unwrap());
    assert!(!saved.matches(&mut other).unwrap());
    drop(left);
}

#[test]
fn a_second_run_is_refused_until_the_first_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ..) = killed(dir.path());
    let limits = Limits { region: None, budget: 1, undo: Some(dir.path().to_path_buf()) };
    let consent = Consent::check(&id(), None).unwrap();
    let again = Guard::writing(Box::new(Fake::new(SIZE)), id(), &consent, &limits).map(drop).unwrap_err();
    assert!(matches!(&again, DeviceError::Refused(t) if t.contains(path.to_str().unwrap())), "{again}");
    fs::remove_file(&path).unwrap();
    assert!(Guard::writing(Box::new(Fake::new(SIZE)), id(), &consent, &limits).is_ok());
}

/// The next card in a reader, of the same size and without serial number as well, may be another one: the refusal says so, and what to do
/// where the first is gone.
#[test]
fn the_journal_of_a_card_that_is_gone_is_given_up_by_name() {
    for (serial, may_be_another) in [(None, true), (Some("S1"), false)] {
        let card = TargetId { path: "/dev/sdx".into(), kind: TargetKind::Disk, serial: serial.map(str::to_string), ..id() };
        let consent = Consent::check(&card, Some(&card.consent_id())).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { region: None, budget: u64::MAX, undo: Some(dir.path().to_path_buf()) };
        let begin = || Guard::writing(Box::new(Fake::new(SIZE)), card.clone(), &consent, &limits);
        let mut g = begin().unwrap();
        g.access(write(4096, 8192)).unwrap();
        let path = g.journal().unwrap();
        drop(g);
        let Err(DeviceError::Refused(why)) = begin() else { panic!("old content waits there") };
        let (journal, name) = (path.display(), card.consent_id());
        assert!(
            why.ends_with(&format!(
                "nandscope undo {journal}; or give that content up: nandscope undo --discard {journal} --consent {name}"
            )),
            "{why}"
        );
        assert_eq!(why.contains("another one of its size") && why.contains("with the card of that run in place"), may_be_another, "{why}");
        // As given, it ends the matter.
        super::super::discard(&path, Some(&name)).unwrap();
        assert!(begin().is_ok());
    }
}

#[test]
fn a_run_that_wrote_nothing_leaves_no_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (mut g, _) = guarded(dir.path());
    g.access(Access { op: Op::Read, at: 0, len: 512 }).unwrap();
    drop(g);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn no_write_goes_out_when_its_old_content_cannot_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = Fake::new(SIZE);
    let bytes = fake.bytes.clone();
    fake.bad = Some(5 * 4096 + 100);
    let limits = Limits { region: None, budget: u64::MAX, undo: Some(dir.path().to_path_buf()) };
    let mut g = Guard::writing(Box::new(fake), id(), &Consent::check(&id(), None).unwrap(), &limits).unwrap();
    let before = bytes.lock().unwrap().clone();
    assert!(matches!(g.batch(&[write(4 * 4096, 4096), write(5 * 4096, 4096)], 1), Err(DeviceError::Io { op: "read", .. })));
    assert_eq!(*bytes.lock().unwrap(), before);
    // The journal stays usable.
    g.access(write(4 * 4096, 4096)).unwrap();
    g.restore().unwrap();
    assert_eq!(*bytes.lock().unwrap(), before);
}

#[test]
fn verification_finds_a_medium_that_does_not_keep_what_is_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut left, _) = killed(dir.path());
    left.deaf = true;
    let e = Saved::open(&path).unwrap().put_back(&mut left).unwrap_err();
    assert!(matches!(e, DeviceError::Io { op: "verification", at: 0, .. }), "{e}");
}

#[test]
fn a_live_journal_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let (mut g, _) = guarded(dir.path());
    g.access(write(0, 512)).unwrap();
    let path = g.journal().unwrap();
    assert!(!Saved::open(&path).unwrap().lock());
    drop(g);
    assert!(Saved::open(&path).unwrap().lock());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any series of writes, then restore: every byte is as before.
    #[test]
    fn any_series_of_writes_is_undone(asks in proptest::collection::vec((0..200u64, 1..20u64, 0..3u8), 1..30)) {
        let dir = tempfile::tempdir().unwrap();
        let (mut g, bytes) = guarded(dir.path());
        let before = bytes.lock().unwrap().clone();
        for (at, len, kind) in asks {
            let op = [Op::Write(Fill::Zeros), Op::Write(Fill::Stamp(at)), Op::Discard][kind as usize];
            g.access(Access { op, at: at * 512, len: len * 512 }).unwrap();
        }
        g.restore().unwrap();
        prop_assert_eq!(&*bytes.lock().unwrap(), &before);
    }

    /// Arbitrary bytes after a good header never panic and never give a range outside the target.
    #[test]
    fn arbitrary_journals_never_panic(noise in proptest::collection::vec(any::<u8>(), 0..3000), magic: bool) {
        let dir = tempfile::tempdir().unwrap();
        let (path, mut left, _) = killed(dir.path());
        let mut data = fs::read(&path).unwrap();
        let at = data.len() / 2;
        for (i, b) in noise.iter().enumerate() {
            if let Some(d) = data.get_mut(at + i) {
                *d = *b;
            }
        }
        if magic {
            data[at..at + 4].copy_from_slice(RECORD_MAGIC);
        }
        fs::write(&path, &data).unwrap();
        let saved = Saved::open(&path).unwrap();
        prop_assert!(saved.records.iter().all(|r| r.at + r.len <= SIZE));
        saved.put_back(&mut left).unwrap();
    }
}

/// What is written for its time alone is what is there, and then nothing has to be put back; one byte repeated is written only where that was
/// said to take as long.
#[test]
fn what_is_there_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let (mut g, bytes) = guarded(dir.path());
    bytes.lock().unwrap()[MIB as usize..2 * MIB as usize].fill(0xff);
    let before = bytes.lock().unwrap().clone();
    // A range that grows, one that overlaps it, and one that was not saved whole before.
    for a in [write(0, 8192), write(4096, 8192), write(512, 65536)] {
        g.rewrite(a).unwrap();
        assert_eq!(*bytes.lock().unwrap(), before, "{a:?}");
    }
    assert_eq!((g.changed(), g.counters().bytes_written), (RangeSet::default(), 81920));
    g.rewrite(write(MIB, 4096)).unwrap();
    assert_ne!(*bytes.lock().unwrap(), before, "a repeated byte may be written faster: random bytes it is");
    g.write_same(0);
    g.rewrite(write(MIB + 8192, 4096)).unwrap();
    assert_eq!(g.changed().iter().collect::<Vec<_>>(), [MIB..MIB + 4096, MIB + 8192..MIB + 12288], "another byte than this one");
    g.write_same(0xff);
    g.rewrite(write(MIB + 65536, 4096)).unwrap();
    assert_eq!(g.changed().iter().count(), 2);
    let written = g.counters().bytes_written;
    assert_eq!(g.restore().unwrap().unwrap().bytes, 66048 + 3 * 4096, "all is verified");
    assert_eq!(g.counters().bytes_written - written, 2 * 4096, "and only what changed is written");
    assert_eq!(*bytes.lock().unwrap(), before);
}

/// A killed run leaves nobody who knows what it changed: what reads as before is not written.
#[test]
fn after_a_kill_only_what_differs_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (mut g, bytes) = guarded(dir.path());
    let before = bytes.lock().unwrap().clone();
    g.rewrite(write(0, 65536)).unwrap();
    g.access(write(MIB, 4096)).unwrap();
    let path = g.journal().unwrap();
    drop(g);
    let mut left = Fake::new(SIZE);
    left.bytes = bytes;
    let saved = Saved::open(&path).unwrap();
    let bytes = left.bytes.clone();
    let mut again = Guard::read_only(Box::new(left), id());
    assert_eq!(again.undo(&saved).unwrap().restored.bytes, 65536 + 4096);
    assert_eq!((again.counters().bytes_written, &*bytes.lock().unwrap()), (4096, &before));
}
