//! Cards that map each part by itself, as those of CompactFlash in zones of 1000 blocks: the AUs that stay open are so many in each zone.

use nandscope::device::{Access, Device, DeviceError, Fill, Geometry, Op, SimDevice, Timed};
use nandscope::experiment::by_name;
use nandscope::finding::{Finding, Quantity};
use nandscope::probe::{Plan, probe};
use nandscope::units::{MIB, Nanos};
use nandscope_sim::{Model, cards};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

/// Simulated cards one behind the other, with one clock.
struct Zones {
    zones: Vec<SimDevice>,
    /// Bytes of each.
    size: u64,
    geometry: Geometry,
    now: Nanos,
    /// What each sector was written with last.
    content: HashMap<u64, Fill>,
}

const SECTOR: u64 = 512;

impl Zones {
    fn of(model: &Model, n: u64) -> Zones {
        let zones: Vec<SimDevice> = (0..n).map(|i| SimDevice::new(model, 1 + i)).collect();
        let size = model.card.capacity;
        let geometry = Geometry { size: n * size, ..zones[0].geometry().clone() };
        Zones { zones, size, geometry, now: Nanos(0), content: HashMap::new() }
    }
}

impl Device for Zones {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What goes over an edge is done one part after the other.
    fn access(&mut self, a: Access) -> Result<Timed, DeviceError> {
        let (start, mut at) = (self.now, a.at);
        while at < a.at + a.len {
            let zone = &mut self.zones[(at / self.size) as usize];
            let len = (a.at + a.len - at).min(self.size - at % self.size);
            zone.idle(self.now - zone.now());
            zone.access(Access { at: at % self.size, len, ..a })?;
            (self.now, at) = (zone.now(), at + len);
        }
        if let Op::Write(fill) = a.op {
            self.content.extend((a.at..a.at + a.len).step_by(SECTOR as usize).map(|at| (at, fill)));
        }
        Ok(Timed { start, took: self.now - start })
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn idle(&mut self, d: Nanos) {
        self.now = self.now + d;
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        for (i, sector) in into.chunks_mut(SECTOR as usize).enumerate() {
            let at = at + i as u64 * SECTOR;
            self.content.get(&at).unwrap_or(&Fill::Zeros).render(at, sector);
        }
        Ok(())
    }

    fn store(&mut self, _at: u64, _from: &[u8]) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported("content".into()))
    }
}

fn opened(device: &mut dyn Device) -> [Finding; 2] {
    let names = ["capacity", "read-boundary", "au-grid", "write-unit", "open-au-linear", "open-au-random"];
    let experiments = names.map(|name| by_name(name).unwrap()).to_vec();
    let (stop, time, region) = (AtomicBool::new(false), Nanos::from_secs_f64(600.0), 0..device.geometry().size);
    let plan = Plan { experiments, region, time, writes: 4 << 30, seed: 1, stop: &stop };
    let found = probe(device, &plan, &mut |_| {}).1;
    [Quantity::OpenAusLinear, Quantity::OpenAusRandom].map(|q| found.get(q).unwrap().clone())
}

/// Dozens of AUs all over such a card stay open, and a file system that writes several files side by side has no use of that.
#[test]
fn the_sum_over_zones_is_no_count() {
    for (name, zones) in [("flashbench-readme", 4), ("toshiba-emmc", 3), ("flashbench-readme", 2)] {
        let mut model = Model::parse(cards::text(name).unwrap(), name).unwrap();
        model.card.capacity = 1024 * MIB;
        let one = opened(&mut SimDevice::new(&model, 1)).map(|f| f.number().unwrap_or_else(|| panic!("{name}: {f:?}")));
        for (f, n) in opened(&mut Zones::of(&model, zones)).iter().zip(one) {
            let told = f.number().or(f.at_least.map(|b| b.0)).unwrap_or(0.0);
            assert!(told <= n, "{name}, {zones} zones of {n}: {f:?}");
        }
    }
}

/// Nor do AUs at the front count that take random writes without one of their own, however many they are.
#[test]
fn a_large_fat_zone_adds_none() {
    for name in ["flashbench-readme", "toshiba-emmc", "swissbit-1gb"] {
        let mut model = Model::parse(cards::text(name).unwrap(), name).unwrap();
        let truth = [model.truth().open_aus_linear, model.truth().open_aus_random].map(|n| n.map(f64::from));
        model.ftl.block.fat_zone = 48 * MIB;
        let told = opened(&mut SimDevice::new(&model, 1));
        assert_eq!(told.each_ref().map(Finding::number), truth, "{name}: {told:?}");
    }
}
