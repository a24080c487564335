//! A partition instead of the whole disk: what lies in it is counted from its start, and erase blocks and write units begin where they
//! begin on the disk.

use nandscope::device::{Access, Device, Geometry, Result, SimDevice, Timed};
use nandscope::experiment;
use nandscope::finding::Quantity;
use nandscope::probe::{Plan, probe};
use nandscope::units::Nanos;
use nandscope_sim::{Model, random};
use std::sync::atomic::AtomicBool;

const MIB: u64 = 1 << 20;

struct Partition {
    disk: SimDevice,
    geometry: Geometry,
}

impl Partition {
    fn new(model: &Model, seed: u64, begins: u64) -> Partition {
        let disk = SimDevice::new(model, seed);
        let mut geometry = disk.geometry().clone();
        geometry.size -= begins;
        geometry.offset = begins;
        Partition { disk, geometry }
    }

    fn on_disk(&self, a: Access) -> Access {
        Access { at: a.at + self.geometry.offset, ..a }
    }
}

impl Device for Partition {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        a.check(&self.geometry)?;
        self.disk.access(self.on_disk(a))
    }

    fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        let all: Vec<Access> = all.iter().map(|&a| self.on_disk(a)).collect();
        self.disk.batch(&all, depth)
    }

    fn now(&self) -> Nanos {
        self.disk.now()
    }

    fn idle(&mut self, d: Nanos) {
        self.disk.idle(d);
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.disk.load(at + self.geometry.offset, into)
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.disk.store(at + self.geometry.offset, from)
    }
}

/// Value and confidence of the first erase block, and where it is in truth; both counted from the start of the partition.
fn first_block(model: &Model, seed: u64, begins: u64) -> (Option<(f64, f64)>, f64) {
    let truth = model.truth();
    let mut device = Partition::new(model, seed, begins);
    let region = 0..device.geometry.size;
    let stop = AtomicBool::new(false);
    let plan = Plan { experiments: experiment::probing(), region, time: Nanos::from_secs_f64(1800.0), writes: 8 << 30, seed, stop: &stop };
    let (_, findings) = probe(&mut device, &plan, &mut |_| {});
    let said = |q| findings.get(q).and_then(|f| Some((f.number()?, f.confidence)));
    let at = said(Quantity::EraseBlockOffset).filter(|_| said(Quantity::EraseBlock).is_some_and(|b| b.0 == truth.erase_block as f64));
    let real = (truth.erase_block_offset as i64 - begins as i64).rem_euclid(truth.erase_block.max(1) as i64);
    (at, real as f64)
}

#[test]
fn erase_blocks_of_partitions_begin_where_those_of_the_disk_do() {
    let (mut right, mut wrong) = (0, vec![]);
    for seed in 1..=24 {
        let model = random::card(seed);
        // The old place of a first partition, and today's.
        for begins in [63 * 512, 4 * MIB] {
            if model.card.sector != 512 {
                continue;
            }
            match first_block(&model, seed, begins) {
                (Some((at, _)), real) if at == real => right += 1,
                (Some((at, sure)), real) if sure >= 0.7 => wrong.push((seed, begins, at, real)),
                _ => {}
            }
        }
    }
    assert!(right > 25 && wrong.len() <= 1, "{right} right, wrong: {wrong:?}");
}
