//! A card with the costs of a textbook, one without, and a noisy one, through the real runner.

use super::super::Setup;
use super::super::run::{Limits, run};
use super::*;
use crate::device::{Access, Device, Geometry, Op, Timed};
use crate::finding::Finding;
use crate::infer::beliefs::Beliefs;
use crate::infer::pipeline;
use crate::samples::{Ended, Run};
use crate::units::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::sync::atomic::AtomicBool;

/// Microseconds: what a command costs, what a block costs, and what each form adds.
struct Card {
    geometry: Geometry,
    how: Option<Multi>,
    now: u64,
    command: f64,
    block: f64,
    stop: f64,
    pre_erase: f64,
    /// Requests by way of the kernel are cut at so many bytes.
    cut: u64,
    noise: f64,
    raw: bool,
    /// An open-ended write fails as it does where the kernel polls.
    polls: bool,
    rng: Pcg64Mcg,
    sent: Vec<(Option<Multi>, Access)>,
}

impl Card {
    fn new() -> Card {
        let geometry = Geometry { size: 512 * MIB, sector: 512, max_request: Some(512 * KIB), offset: 0, write_cache: false };
        Card {
            geometry,
            how: None,
            now: 0,
            command: 1200.0,
            block: 25.0,
            stop: 300.0,
            pre_erase: 0.9,
            cut: 512 * KIB,
            noise: 0.004,
            raw: true,
            polls: false,
            rng: Pcg64Mcg::new(7),
            sent: vec![],
        }
    }
}

impl Device for Card {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn access(&mut self, a: Access) -> Result<Timed, DeviceError> {
        a.check(&self.geometry)?;
        assert!(matches!(a.op, Op::Write(_)));
        self.sent.push((self.how, a));
        if self.polls && matches!(self.how, Some(Multi::OpenEnded | Multi::Acmd23)) {
            return Err(self.how.unwrap().unsupported("this kernel waits"));
        }
        let blocks = (a.len / SECTOR) as f64;
        let us = match self.how {
            Some(Multi::SingleBlocks) => blocks * (self.command + self.block),
            Some(Multi::PreDefined) => self.command + blocks * self.block,
            Some(Multi::OpenEnded) => self.command + blocks * self.block + self.stop,
            Some(Multi::Acmd23) => self.pre_erase * (self.command + blocks * self.block + self.stop),
            None => 150.0 + a.len.div_ceil(self.cut) as f64 * self.command + blocks * self.block,
        };
        let wave = (0..12).map(|_| self.rng.next_u64() as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
        let took = (us * 1e3 * (1.0 + self.noise * wave).max(0.3)) as u64;
        let start = Nanos(self.now);
        self.now += took;
        Ok(Timed { start, took: Nanos(took) })
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn idle(&mut self, d: Nanos) {
        self.now += d.0;
    }

    fn load(&mut self, _at: u64, _into: &mut [u8]) -> Result<(), DeviceError> {
        unreachable!("the experiment only writes")
    }

    fn store(&mut self, _at: u64, _from: &[u8]) -> Result<(), DeviceError> {
        unreachable!("the experiment only writes")
    }

    fn write_as(&mut self, how: Option<Multi>) -> Result<(), DeviceError> {
        match how {
            Some(how) if !self.raw => return Err(how.unsupported("this target takes no raw MMC commands")),
            _ => self.how = how,
        }
        Ok(())
    }
}

fn measured(card: &mut Card) -> Run {
    let geometry = card.geometry.clone();
    let known = Beliefs::default();
    let setup = Setup { geometry: &geometry, region: 64 * MIB..256 * MIB, believed: &known, writes: u64::MAX };
    let stop = AtomicBool::new(false);
    let limits = Limits { deadline: Nanos(3_600_000_000_000), stop: &stop, seed: 5 };
    let run = run(&MultiBlock, &setup, card, &limits, &mut |_| {});
    assert_eq!(run.ended, Ended::Complete, "{:?}", run.faults);
    for (_, a) in &card.sent {
        assert!(a.at >= 64 * MIB && a.at + a.len <= 256 * MIB, "{a:?} leaves the region");
    }
    assert_eq!(card.how, None, "the next experiment must write by way of the kernel");
    run
}

fn found(run: &Run, q: Quantity) -> Finding {
    pipeline::of_run(run).into_iter().find(|f| f.quantity == q).unwrap()
}

fn near(f: &Finding, want: f64) {
    let (v, [low, high]) = (f.number().unwrap_or(f64::NAN), f.interval.unwrap());
    assert!((v / want - 1.0).abs() < 0.03 && low <= v && v <= high, "{} is not {want}: {f:?}", f.quantity.key());
}

#[test]
fn the_costs_of_a_card_come_out_as_they_went_in() {
    let mut card = Card::new();
    let run = measured(&mut card);
    let g = found(&run, Quantity::MultiBlockGain);
    near(&g, (1200.0 + 25.0) / ((1200.0 + 1024.0 * 25.0) / 1024.0));
    // Nine tenths of the rate at 1024 blocks: (1200 + 25 n) / n <= (1200 + 25600) / 1024 / 0.9 from n = 296 on.
    assert_eq!(found(&run, Quantity::MultiBlockKnee).number(), Some(512.0 * 512.0));
    let ratios = (0..=10).map(|k| (1500.0 + 25.0 * f64::powi(2.0, k)) / (1200.0 + 25.0 * f64::powi(2.0, k)));
    near(&found(&run, Quantity::PreDefinedGain), (ratios.map(f64::ln).sum::<f64>() / 11.0).exp());
    near(&found(&run, Quantity::PreEraseGain), 1.0 / 0.9);
    let l = found(&run, Quantity::LargestRequest);
    assert!(l.number() == Some(512.0 * 1024.0) && l.confidence > 0.9, "{l:?}");
    // Every form wrote the same lengths.
    let lengths = |how| -> Vec<u64> {
        let mut all: Vec<u64> = card.sent.iter().filter(|s| s.0 == Some(how)).map(|s| s.1.len / SECTOR).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    assert_eq!(lengths(Multi::PreDefined), (0..=10).map(|k| 1 << k).collect::<Vec<u64>>());
    assert_eq!(lengths(Multi::PreDefined), lengths(Multi::OpenEnded));
    assert_eq!(lengths(Multi::SingleBlocks).last(), Some(&MOST_SINGLE));
    let figures = pipeline::figures(&run);
    assert_eq!(figures.iter().map(|f| f.series.len()).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn a_card_to_which_the_form_is_all_the_same_says_so() {
    let mut card = Card { command: 0.0, stop: 0.0, pre_erase: 1.0, ..Card::new() };
    let run = measured(&mut card);
    near(&found(&run, Quantity::MultiBlockGain), 1.0);
    assert_eq!(found(&run, Quantity::MultiBlockKnee).number(), Some(512.0), "one block is as good");
    for q in [Quantity::PreDefinedGain, Quantity::PreEraseGain] {
        let f = found(&run, q);
        near(&f, 1.0);
        assert!(f.evidence.iter().any(|e| e == "no difference shows"), "{f:?}");
    }
    let l = found(&run, Quantity::LargestRequest);
    let told = |v: f64| v == 524_288.0 && l.caveats.iter().any(|c| c.contains("times alone show no cut"));
    assert!(l.number().is_none_or(told), "a cut that costs nothing cannot be seen: {l:?}");
}

#[test]
fn what_the_kernel_cannot_send_is_said_and_the_rest_is_measured() {
    let mut card = Card { polls: true, ..Card::new() };
    let run = measured(&mut card);
    assert_eq!(run.faults.len(), 2);
    assert_eq!(card.sent.iter().filter(|s| matches!(s.0, Some(Multi::OpenEnded | Multi::Acmd23))).count(), 2, "tried once each");
    for q in [Quantity::PreDefinedGain, Quantity::PreEraseGain] {
        let f = found(&run, q);
        assert!(f.value.is_none() && f.reason.as_ref().unwrap().contains("this kernel waits"), "{f:?}");
    }
    assert!(found(&run, Quantity::MultiBlockGain).number().is_some_and(|g| g > 40.0));
}

#[test]
fn without_raw_commands_the_way_of_the_kernel_answers() {
    let mut card = Card { raw: false, cut: 128 * KIB, ..Card::new() };
    card.geometry.max_request = Some(120 * KIB);
    let run = measured(&mut card);
    let g = found(&run, Quantity::MultiBlockGain);
    // Four commands of 128 KiB against 1024 of one block.
    near(&g, 1375.0 / ((150.0 + 4.0 * 1200.0 + 25600.0) / 1024.0));
    assert!(g.caveats[0].contains("by way of the kernel"), "{g:?}");
    let l = found(&run, Quantity::LargestRequest);
    assert!(l.number() == Some(131072.0) && l.caveats[0].contains("was not found"), "{l:?}");
    assert!(found(&run, Quantity::PreDefinedGain).reason.unwrap().contains("no raw MMC commands"));
}

#[test]
fn an_uncut_path_gives_a_bound() {
    let mut card = Card { cut: u64::MAX, ..Card::new() };
    card.geometry.max_request = None;
    let l = found(&measured(&mut card), Quantity::LargestRequest);
    assert_eq!((l.value, l.at_least.unwrap().0), (None, 1048576.0), "{l:?}");
}

#[test]
fn intervals_hold_what_they_promise_under_noise() {
    let truth = 1225.0 / ((1200.0 + 25600.0) / 1024.0);
    let (mut inside, mut narrow, mut wrong) = (0, 0, 0);
    for seed in 0..60 {
        let mut card = Card { noise: 0.15, rng: Pcg64Mcg::new(seed), ..Card::new() };
        let run = measured(&mut card);
        let [low, high] = found(&run, Quantity::MultiBlockGain).interval.unwrap();
        inside += u32::from(low <= truth && truth <= high);
        narrow += u32::from(high - low < 0.58 * truth);
        let l = found(&run, Quantity::LargestRequest);
        wrong += u32::from(l.value.is_some_and(|v| v.0 != 524_288.0));
    }
    assert!(inside >= 54, "the truth lies in {inside} of 60 intervals of 95 %");
    assert!(narrow >= 50, "{narrow}");
    assert!(wrong <= 2, "{wrong} of 60 say a wrong largest request");
}

#[test]
fn a_run_without_samples_decides_nothing() {
    for f in pipeline::of_run(&Run::new("multi-block")) {
        assert!(f.value.is_none() && f.reason.is_some(), "{f:?}");
    }
}
