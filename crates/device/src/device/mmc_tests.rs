//! The port against a card and a kernel that are told how to behave.

use super::super::fake::Fake;
use super::*;
use crate::device::{Consent, Guard, Limits, TargetId};
use crate::host::facts::TargetKind;
use std::sync::{Arc, Mutex};

/// What the wire saw, with `A` before application commands, and what the card keeps.
#[derive(Default)]
struct Seen {
    log: Vec<String>,
    bytes: Vec<u8>,
}

/// An SD card behind a kernel that polls after writes, or does not.
struct Bench {
    polls: bool,
    by_sector: bool,
    fail: Option<i32>,
    error_bits: u32,
    receiving: bool,
    preset: Option<u32>,
    seen: Arc<Mutex<Seen>>,
}

impl Bench {
    fn new(polls: bool) -> (Bench, Arc<Mutex<Seen>>) {
        let seen = Arc::new(Mutex::new(Seen { log: vec![], bytes: vec![0; 1 << 20] }));
        (Bench { polls, by_sector: true, fail: None, error_bits: 0, receiving: false, preset: None, seen: seen.clone() }, seen)
    }
}

impl Wire for Bench {
    fn send(&mut self, all: &mut [Command]) -> io::Result<Nanos> {
        if let Some(code) = self.fail {
            return Err(io::Error::from_raw_os_error(code));
        }
        let mut seen = self.seen.lock().unwrap();
        for c in all.iter_mut() {
            seen.log.push(format!("{}{}", if c.app { "A" } else { "" }, c.opcode));
            c.response = if self.receiving { 6 << 9 } else { 4 << 9 };
            let preset = self.preset.take();
            match (c.app, c.opcode, &mut c.payload) {
                (false, 23, _) => self.preset = Some(c.arg),
                (false, 24 | 25, Payload::Out(data)) => {
                    assert!(!self.receiving && data.len() <= 512 << 10, "the kernel refuses this");
                    assert!(c.opcode == 25 || data.len() == 512);
                    let at = c.arg as usize * if self.by_sector { 512 } else { 1 };
                    seen.bytes[at..at + data.len()].copy_from_slice(data);
                    self.receiving = c.opcode == 25 && preset != Some(data.len() as u32 / 512);
                    c.response |= self.error_bits;
                    if self.receiving && self.polls {
                        return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
                    }
                }
                (false, 12, _) => self.receiving = false,
                (true, 13 | 51, Payload::In(into)) => into.fill(0x5a),
                (false, 8, _) => return Err(io::Error::from_raw_os_error(libc::EIO)),
                _ => {}
            }
        }
        Ok(Nanos(1000 * all.len() as u64))
    }
}

fn sd() -> CardFacts {
    CardFacts { sd: true, rca: 0x1234, by_sector: Some(true), cmd23: true }
}

fn write(how: Multi, at: u64, blocks: u32) -> Transaction {
    Transaction { how, at, blocks, fill: Fill::Stamp(3) }
}

fn rendered(at: u64, blocks: u32) -> Vec<u8> {
    let mut data = vec![0; blocks as usize * 512];
    Fill::Stamp(3).render(at, &mut data);
    data
}

#[test]
fn every_form_sends_its_commands_and_the_same_data() {
    for (how, log) in
        [(Multi::SingleBlocks, "24 24 24"), (Multi::OpenEnded, "25 12"), (Multi::PreDefined, "23 25"), (Multi::Acmd23, "A23 13 25 12")]
    {
        let (wire, seen) = Bench::new(false);
        let mut port = Port::new(wire, sd());
        let took = port.transaction(write(how, 8192, 3)).unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(seen.log.join(" "), log);
        assert_eq!(took, Nanos(1000 * seen.log.len() as u64));
        assert_eq!(seen.bytes[8192..8192 + 3 * 512], rendered(8192, 3), "{how:?}");
        assert!(seen.bytes[..8192].iter().chain(&seen.bytes[8192 + 3 * 512..]).all(|&b| b == 0), "{how:?} wrote elsewhere");
    }
}

#[test]
fn old_cards_count_addresses_in_bytes() {
    let (mut wire, seen) = Bench::new(false);
    wire.by_sector = false;
    let mut port = Port::new(wire, CardFacts { by_sector: Some(false), ..sd() });
    port.transaction(write(Multi::PreDefined, 4096, 8)).unwrap();
    port.transaction(write(Multi::SingleBlocks, 65536, 2)).unwrap();
    assert_eq!(seen.lock().unwrap().bytes[4096..8192], rendered(4096, 8));
    assert_eq!(seen.lock().unwrap().bytes[65536..66560], rendered(65536, 2));
    let e = port.transaction(write(Multi::PreDefined, 5 << 30, 8)).unwrap_err();
    assert!(matches!(e, DeviceError::OutOfBounds(_)), "{e}");
}

#[test]
fn more_single_blocks_than_an_ioctl_takes_go_in_several() {
    let (wire, seen) = Bench::new(true);
    let mut port = Port::new(wire, sd());
    assert_eq!(port.transaction(write(Multi::SingleBlocks, 0, 600)).unwrap(), Nanos(600_000));
    assert_eq!(seen.lock().unwrap().log.len(), 600);
    assert_eq!(seen.lock().unwrap().bytes[..600 * 512], rendered(0, 600));
}

#[test]
fn a_kernel_that_polls_leaves_open_ended_unsupported_and_the_card_usable() {
    for how in [Multi::OpenEnded, Multi::Acmd23] {
        let (wire, seen) = Bench::new(true);
        let mut port = Port::new(wire, sd());
        assert!(port.supports(how).is_ok(), "not known before it is tried");
        let e = port.transaction(write(how, 0, 8)).unwrap_err();
        assert!(matches!(e, DeviceError::Unsupported(_)) && e.to_string().contains(how.name()), "{e}");
        assert!(seen.lock().unwrap().log.ends_with(&["13".into(), "12".into()]), "the card must be brought back");
        // Both need the CMD12 that is never sent; the others go on.
        assert!(port.supports(Multi::OpenEnded).is_err() && port.supports(Multi::Acmd23).is_err());
        let before = seen.lock().unwrap().log.len();
        assert!(port.transaction(write(how, 0, 8)).is_err());
        assert_eq!(seen.lock().unwrap().log.len(), before, "nothing is sent again");
        port.transaction(write(Multi::PreDefined, 0, 8)).unwrap();
        port.transaction(write(Multi::SingleBlocks, 0, 8)).unwrap();
    }
}

#[test]
fn what_the_card_cannot_do_is_said() {
    let (wire, _) = Bench::new(false);
    let port = Port::new(wire, CardFacts { cmd23: false, ..sd() });
    assert!(port.supports(Multi::PreDefined).unwrap_err().to_string().contains("CMD23"));
    let port = Port::new(Bench::new(false).0, CardFacts { sd: false, ..sd() });
    assert!(port.supports(Multi::Acmd23).unwrap_err().to_string().contains("SD cards"));
}

#[test]
fn failures_keep_their_meaning() {
    for (code, unsupported) in
        [(libc::EPERM, true), (libc::ENOTTY, true), (libc::EOVERFLOW, true), (libc::EIO, false), (libc::ETIMEDOUT, false)]
    {
        let (mut wire, _) = Bench::new(false);
        wire.fail = Some(code);
        let e = Port::new(wire, sd()).transaction(write(Multi::PreDefined, 0, 8)).unwrap_err();
        assert_eq!(matches!(e, DeviceError::Unsupported(_)), unsupported, "{code}: {e}");
        assert_eq!(matches!(e, DeviceError::Io { .. }), !unsupported, "{code}: {e}");
    }
    // A kernel that says yes while the card said no.
    let (mut wire, _) = Bench::new(false);
    wire.error_bits = 1 << 26;
    let e = Port::new(wire, sd()).transaction(write(Multi::PreDefined, 0, 8)).unwrap_err();
    assert!(e.to_string().contains("0x04000000"), "{e}");
}

#[test]
fn registers_are_asked_for_or_the_reason_is_said() {
    let (mut wire, seen) = Bench::new(false);
    assert_eq!(request(&mut wire, Register::Scr), Ok(vec![0x5a; 8]));
    assert_eq!(request(&mut wire, Register::Ssr), Ok(vec![0x5a; 64]));
    assert!(request(&mut wire, Register::ExtCsd).unwrap_err().contains("os error 5"), "a card that refuses CMD8");
    assert_eq!(seen.lock().unwrap().log.join(" "), "A51 A13 8");
    for (code, why) in [(libc::EPERM, "CAP_SYS_RAWIO"), (libc::ENOTTY, "no raw MMC commands"), (libc::ETIMEDOUT, "does not answer")] {
        wire.fail = Some(code);
        assert!(request(&mut wire, Register::Ssr).unwrap_err().contains(why), "{code}");
    }
}

#[test]
fn sysfs_says_how_to_address_a_card() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let read = |size| CardFacts::read(dir.path(), size);
    assert_eq!(read(4 << 30), None);
    for (name, text) in
        [("type", "SD\n"), ("rca", "0x1234\n"), ("csd", "400e00325b59000003ff7f800a400001\n"), ("scr", "0235800200000000\n")]
    {
        put(name, text);
    }
    assert_eq!(read(512 << 20), Some(CardFacts { sd: true, rca: 0x1234, by_sector: Some(true), cmd23: true }));
    // A 2 GiB SDSC without CMD23.
    put("csd", "002600325f5ae3ffffffdfff92a00000\n");
    put("scr", "0225800000000000\n");
    assert_eq!(read(2 << 30), Some(CardFacts { sd: true, rca: 0x1234, by_sector: Some(false), cmd23: false }));
    // eMMC: C_SIZE 0xfff leaves it to the size; the OCR in sysfs says nothing (seen on 6.1).
    put("type", "MMC\n");
    put("csd", "d02701320f5903fff6dbffef8e40400d\n");
    put("ocr", "0x00300000\n");
    assert_eq!(read(4 << 30), Some(CardFacts { sd: false, rca: 0x1234, by_sector: Some(true), cmd23: true }));
    let between = read(2 << 30).unwrap();
    assert_eq!(between.by_sector, None);
    let (wire, seen) = Bench::new(false);
    let e = Port::new(wire, between).transaction(write(Multi::PreDefined, 0, 8)).unwrap_err();
    assert!(matches!(e, DeviceError::Unsupported(_)) && e.to_string().contains("in blocks or in bytes"), "{e}");
    assert!(seen.lock().unwrap().log.is_empty(), "nothing may be sent");
    put("csd", "d02701320f5901fff6dbffef8e40400d\n");
    assert_eq!(read(1 << 30).unwrap().by_sector, Some(false));
    put("csd", "not a register\n");
    assert_eq!(read(1 << 30), None);
}

fn guarded(budget: u64) -> (Guard, Arc<Mutex<Seen>>) {
    let (wire, seen) = Bench::new(false);
    let device = Commanded::new(Fake::new(1 << 20), Port::new(wire, sd()), false);
    let id = TargetId { path: "sim:x".into(), kind: TargetKind::Simulated, serial: None, model: None, size: 1 << 20, offset: 0 };
    let consent = Consent::check(&id, None).unwrap();
    let limits = Limits { region: Some(65536..131072), budget, undo: None };
    (Guard::writing(Box::new(device), id, &consent, &limits).unwrap(), seen)
}

#[test]
fn raw_writes_obey_the_guard() {
    let (mut guard, seen) = guarded(8192);
    guard.write_as(Some(Multi::PreDefined)).unwrap();
    let write = |at, len| Access { op: Op::Write(Fill::Stamp(3)), at, len };
    for outside in [write(0, 4096), write(65536 - 512, 1024), write(131072 - 512, 1024), write(1 << 20, 512), write(65537, 512)] {
        assert!(matches!(guard.access(outside), Err(DeviceError::OutOfBounds(_))), "{outside:?}");
    }
    assert_eq!(guard.access(write(65536, 4096)).unwrap().took, Nanos(2000));
    assert!(matches!(guard.access(write(65536, 8192)), Err(DeviceError::Budget(_))));
    let writes = guard.batch(&[write(65536, 512), write(66048, 512)], 4).unwrap();
    assert_eq!((writes.len(), guard.budget_left(), guard.counters().writes), (2, 8192 - 4096 - 1024, 3));
    assert_eq!(seen.lock().unwrap().log.join(" "), "23 25 23 25 23 25");
    // Back to the way of the kernel: nothing more on the wire.
    guard.write_as(None).unwrap();
    assert_eq!(guard.access(write(65536, 512)).unwrap().took, Nanos(100_000));
    assert_eq!(seen.lock().unwrap().log.len(), 6);
}

#[test]
fn a_refused_form_changes_nothing_and_long_transactions_are_refused() {
    let (wire, seen) = Bench::new(false);
    let mut device = Commanded::new(Fake::new(1 << 20), Port::new(wire, CardFacts { cmd23: false, ..sd() }), false);
    assert!(device.write_as(Some(Multi::PreDefined)).is_err());
    let write = |len| Access { op: Op::Write(Fill::Zeros), at: 0, len };
    device.access(write(512)).unwrap();
    assert!(seen.lock().unwrap().log.is_empty());
    device.write_as(Some(Multi::OpenEnded)).unwrap();
    assert!(matches!(device.access(write((512 << 10) + 512)), Err(DeviceError::OutOfBounds(_))));
    device.access(write(512 << 10)).unwrap();
    // Any other target has no raw commands.
    let e = Fake::new(1024).write_as(Some(Multi::OpenEnded)).unwrap_err();
    assert!(e.to_string().contains("raw MMC commands"), "{e}");
    assert!(Fake::new(1024).write_as(None).is_ok());
}

#[test]
fn the_flush_of_a_volatile_cache_belongs_to_the_write() {
    let (wire, _) = Bench::new(false);
    let mut device = Commanded::new(Fake::new(1 << 20), Port::new(wire, sd()), true);
    device.write_as(Some(Multi::PreDefined)).unwrap();
    let t = device.access(Access { op: Op::Write(Fill::Zeros), at: 0, len: 4096 }).unwrap();
    assert_eq!(t.took, Nanos(2000 + 100_000));
}

/// A wire that answers CMD56 with a block, or fails as told.
struct Maker {
    answer: std::result::Result<u8, i32>,
    first: std::result::Result<(), i32>,
    log: Vec<(u32, u32, bool)>,
}

impl Wire for Maker {
    fn send(&mut self, all: &mut [Command]) -> io::Result<Nanos> {
        for c in all {
            let write = matches!(c.payload, Payload::Out(_));
            self.log.push((c.opcode, c.arg, write));
            match &mut c.payload {
                Payload::Out(data) => {
                    assert!(data.iter().all(|&b| b == 0) && data.len() == 512);
                    self.first.map_err(io::Error::from_raw_os_error)?;
                }
                Payload::In(into) => into.fill(self.answer.map_err(io::Error::from_raw_os_error)?),
                Payload::None => panic!("CMD56 carries a block"),
            }
        }
        Ok(Nanos(1))
    }
}

#[test]
fn the_makers_block_takes_one_or_two_commands() {
    let wire = |first, answer| Maker { answer, first, log: vec![] };
    let mut w = wire(Ok(()), Ok(0x44));
    assert_eq!(general(&mut w, None, 1).unwrap(), vec![0x44; 512]);
    assert_eq!(w.log, [(56, 1, false)]);
    // A host may time out on the write, and the read works all the same.
    let mut w = wire(Err(libc::ETIMEDOUT), Ok(0x98));
    assert_eq!(general(&mut w, Some(0x10), 0x21).unwrap(), vec![0x98; 512]);
    assert_eq!(w.log, [(56, 0x10, true), (56, 0x21, false)]);
    // Without the right to send commands there is no second one.
    let mut w = wire(Err(libc::EPERM), Ok(0));
    assert!(general(&mut w, Some(0x10), 0x21).unwrap_err().contains("root"));
    assert_eq!(w.log.len(), 1);
    assert!(general(&mut wire(Ok(()), Err(libc::ETIMEDOUT)), None, 1).unwrap_err().contains("does not answer"));
}
