use super::super::{Cache, Shared};
use super::*;
use crate::device::{Access, Fill, Geometry, SimDevice};
use nandscope_sim::{Model, cards};

fn card(name: &str) -> Shared<SimDevice> {
    Shared::new(SimDevice::new(&Model::parse(cards::text(name).unwrap(), name).unwrap(), 1).with_content())
}

fn fresh(card: &Shared<SimDevice>, cache: Cache) -> FatVolume {
    let how = Format { cluster: Some(1024), kind: Some(FatType::Fat32) };
    FatVolume::format(Box::new(card.clone()), 0..card.geometry().size, &how, Host::with(cache)).unwrap()
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut b = vec![0; len];
    Fill::Random(seed).render(0, &mut b);
    b
}

const CACHES: [Cache; 5] = [
    Cache::NONE,
    Cache::ONE_SECTOR,
    Cache::TABLES,
    Cache { meta: 8, data: 16, direct: false, write_back: true },
    Cache { meta: 3, data: 5, direct: false, write_back: false },
];

#[test]
fn what_is_written_is_read_with_any_cache_and_after_mounting_again() {
    for cache in CACHES {
        let card = card("cf-256mb");
        let mut v = fresh(&card, cache);
        v.make_dir("DIR").unwrap();
        let (a, _) = v.create("DIR/a").unwrap();
        let (b, _) = v.create("DIR/b").unwrap();
        let (one, two) = (bytes(1, 30_000), bytes(2, 30_000));
        // Two files in turn, in pieces that are no sectors.
        for at in (0..30_000).step_by(700) {
            let end = (at + 700).min(30_000);
            v.write(a, at as u64, &one[at..end]).unwrap();
            v.write(b, at as u64, &two[at..end]).unwrap();
        }
        // In the middle, over what is there.
        v.write(a, 10_001, &two[..999]).unwrap();
        v.close(a).unwrap();
        v.close(b).unwrap();
        let space = v.space().unwrap();
        v.finish().unwrap();
        let mut v = FatVolume::mount(Box::new(card.clone()), 0..card.geometry().size, Host::with(cache)).unwrap();
        assert_eq!(v.space().unwrap(), space);
        let (a, _) = v.open("DIR/a").unwrap();
        let mut back = vec![0; 30_000];
        v.read(a, 0, &mut back).unwrap();
        let mut want = one.clone();
        want[10_001..11_000].copy_from_slice(&two[..999]);
        assert!(back == want, "{cache:?}");
        v.read(a, 9_000, &mut back[..3_333]).unwrap();
        assert!(back[..3_333] == want[9_000..12_333]);
        assert!(matches!(v.read(a, 29_999, &mut back[..2]), Err(VolumeError::Unsupported(_))), "the file ends there");
        v.close(a).unwrap();
        assert!(v.extents("DIR/a").unwrap().len() > 5, "written in turn, so in pieces");
        let mut names: Vec<String> = v.list("DIR").unwrap().into_iter().map(|e| e.name).collect();
        names.sort();
        assert_eq!(names, ["a", "b"]);
    }
}

#[test]
fn requests_are_as_long_as_the_runs_allow() {
    let card = card("cf-256mb");
    let mut v = fresh(&card, Cache::TABLES);
    let (f, _) = v.create("f").unwrap();
    let before = card.with(|c| c.card().counters().clone());
    v.write(f, 0, &bytes(1, 300 << 10)).unwrap();
    let writes = card.with(|c| c.card().counters().writes) - before.writes;
    // 300 KiB in one run, and this host sends at most 128 KiB at a time; the tables stay in memory.
    assert_eq!(writes, 3);
    let t = v.close(f).unwrap();
    assert!(t.took.0 > 0, "closing writes tables and directory");
    let reads = card.with(|c| c.card().counters().reads);
    let (f, _) = v.open("f").unwrap();
    v.read(f, 0, &mut vec![0; 300 << 10]).unwrap();
    assert_eq!(card.with(|c| c.card().counters().reads) - reads, 3);
    assert_eq!(v.extents("f").unwrap().len(), 1);
}

#[test]
fn no_memory_costs_more_than_some() {
    let took = |cache| {
        let card = card("cf-256mb");
        let mut v = fresh(&card, cache);
        let start = v.now();
        let (f, _) = v.create("f").unwrap();
        v.write(f, 0, &bytes(1, 32 << 10)).unwrap();
        v.close(f).unwrap();
        v.now() - start
    };
    let (none, one, tables) = (took(Cache::NONE), took(Cache::ONE_SECTOR), took(Cache::TABLES));
    assert!(none > one && one > tables, "{none} {one} {tables}");
    // The host's own time comes on top.
    let card = card("cf-256mb");
    let mut v = fresh(&card, Cache::TABLES);
    let quick = v.create("a").unwrap().1.took;
    v.set_host(Host { call: Nanos(5_000_000), copy: 1_000_000, ..Host::with(Cache::TABLES) }).unwrap();
    let (f, slow) = v.create("b").unwrap();
    assert!(slow.took > quick + Nanos(4_999_999));
    assert!(v.write(f, 0, &[0; 10_000]).unwrap().took.0 > 15_000_000);
}

#[test]
fn room_ahead_is_given_without_writing_data() {
    let card = card("cf-256mb");
    let mut v = fresh(&card, Cache::TABLES);
    let (f, _) = v.create("f").unwrap();
    let before = card.with(|c| c.card().counters().bytes_written);
    v.preallocate(f, 5 << 20).unwrap();
    v.close(f).unwrap();
    let wrote = card.with(|c| c.card().counters().bytes_written) - before;
    // 5120 clusters of four bytes in two tables.
    assert!((40 << 10..60 << 10).contains(&wrote), "{wrote}");
    assert_eq!(v.extents("f").unwrap(), [Extent { file: 0, at: v.extents("f").unwrap()[0].at, len: 5 << 20 }]);
}

#[test]
fn a_full_volume_says_so_and_keeps_what_fits() {
    let card = card("cf-256mb");
    let size = 8 << 20;
    let how = Format { cluster: Some(512), kind: Some(FatType::Fat16) };
    let mut v = FatVolume::format(Box::new(card.clone()), 0..size, &how, Host::with(Cache::TABLES)).unwrap();
    let free = v.space().unwrap().free;
    let (f, _) = v.create("f").unwrap();
    let data = bytes(3, (free + 4096) as usize);
    assert!(matches!(v.write(f, 0, &data), Err(VolumeError::Full(_))));
    assert_eq!(v.space().unwrap().free, 0);
    v.close(f).unwrap();
    let (f, _) = v.open("f").unwrap();
    let mut back = vec![0; free as usize];
    v.read(f, 0, &mut back).unwrap();
    assert!(back == data[..free as usize]);
    assert!(matches!(v.delete("f"), Err(VolumeError::Unsupported(_))), "it is open");
    v.close(f).unwrap();
    v.delete("F").unwrap();
    assert_eq!(v.space().unwrap().free, free);
    assert!(matches!(v.open("f"), Err(VolumeError::NotFound(_))));
}

#[test]
fn an_old_file_is_emptied_and_its_room_is_free_again() {
    let card = card("cf-256mb");
    let mut v = fresh(&card, Cache::TABLES);
    let free = v.space().unwrap().free;
    for len in [5000, 100, 70_000] {
        let (f, _) = v.create("f").unwrap();
        v.write(f, 0, &bytes(len as u64, len)).unwrap();
        v.close(f).unwrap();
        assert_eq!(v.list("").unwrap(), [Entry { name: "f".into(), len: len as u64, directory: false }]);
    }
    v.delete("f").unwrap();
    assert_eq!(v.space().unwrap().free, free);
}

#[test]
fn foreign_and_damaged_volumes_are_refused() {
    let card = card("cf-256mb");
    let size = card.geometry().size;
    let mount = |card: &Shared<SimDevice>, to: u64| FatVolume::mount(Box::new(card.clone()), 0..to, Host::with(Cache::TABLES)).err();
    assert!(matches!(mount(&card, size), Some(VolumeError::Foreign(_))), "a blank card");
    fresh(&card, Cache::TABLES).finish().unwrap();
    assert!(mount(&card, size).is_none());
    assert!(matches!(mount(&card, size / 2), Some(VolumeError::Damaged(_))), "a truncated image");
    let bad = Format { cluster: Some(1000), kind: None };
    let made = FatVolume::format(Box::new(card.clone()), 0..size, &bad, Host::with(Cache::TABLES));
    assert!(matches!(made.err(), Some(VolumeError::Unsupported(_))));
}

/// A card that is pulled after so many writes.
struct Pulled<D> {
    inner: D,
    left: u32,
}

impl<D: Device> Device for Pulled<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn access(&mut self, a: Access) -> crate::device::Result<Timed> {
        self.inner.access(a)
    }
    fn now(&self) -> Nanos {
        self.inner.now()
    }
    fn idle(&mut self, d: Nanos) {
        self.inner.idle(d);
    }
    fn load(&mut self, at: u64, into: &mut [u8]) -> crate::device::Result<()> {
        self.inner.load(at, into)
    }
    fn store(&mut self, at: u64, from: &[u8]) -> crate::device::Result<()> {
        self.inner.store(at, from)
    }
    fn put(&mut self, at: u64, from: &[u8]) -> crate::device::Result<Timed> {
        if self.left == 0 {
            let source = rustix::io::Errno::NODEV.into();
            return Err(DeviceError::Io { op: "write", at, len: from.len() as u64, source });
        }
        self.left -= 1;
        self.inner.put(at, from)
    }
}

#[test]
fn a_card_that_is_pulled_is_one_error() {
    let card = card("cf-256mb");
    let size = card.geometry().size;
    fresh(&card, Cache::ONE_SECTOR).finish().unwrap();
    for left in [0, 1, 5, 20] {
        let pulled = Pulled { inner: card.clone(), left };
        let mut v = FatVolume::mount(Box::new(pulled), 0..size, Host::with(Cache::ONE_SECTOR)).unwrap();
        let work = |v: &mut FatVolume| {
            let (f, _) = v.create("f")?;
            for i in 0..50 {
                v.write(f, i * 2000, &[1; 2000])?;
            }
            v.close(f)
        };
        match work(&mut v) {
            Err(VolumeError::Device(DeviceError::Io { op: "write", .. })) => {}
            other => panic!("after {left} writes: {other:?}"),
        }
    }
}
