//! What is asked on request of today's cards of both generators, each of cards that have what it asks for: what is true of them.
#![allow(dead_code)]

use crate::bench_card::{amplification, on_bench, told};
use crate::todays::{Asked, Card, NO_LIMIT, Truth, rates};
use crate::todays_truth::{self as found, Steady, still};
use nandscope::device::{Device, SimDevice};
use nandscope::finding::Quantity as Q;
use nandscope_sim::model::Discarded;
use nandscope_sim::{Model, today};

/// Bytes of a card of the second family whose spare flash random writes soon use up.
const SMALL: u64 = 512 << 20;

/// What is true of a card, and the card as it is probed; `None` where it has nothing of what is asked.
pub fn card(card: Card, asked: &Asked) -> Option<(Truth, Box<dyn Device>)> {
    let seed = card.seed;
    if card.kind == "today" {
        let m = match asked.name {
            "flush" => found::with_flush(seed),
            "mixed-reads" => found::with_cache(seed),
            "discard" => found::with_discard(seed),
            "steady-state" => found::small(seed)?,
            "throttling" => found::with_heat(seed).0,
            _ => today::card(seed),
        };
        // Only of the content that a discard leaves something is read.
        let keeps = |d: SimDevice| if asked.name == "discard" { d.with_stamps() } else { d };
        return Some((of_the_simulator(&m, seed, asked)?, Box::new(keeps(SimDevice::new(&m, seed)))));
    }
    let mut slc = told(card.kind, seed, "")["slc"].as_u64().unwrap_or(0);
    let mut more = String::new();
    if asked.name == "steady-state" {
        slc = slc.min(SMALL / 16);
        more = format!("size={SMALL} slc={slc}");
    }
    let small = [4, 8, 12][(seed / 4 % 3) as usize] << 20;
    match (asked.name, seed % 4) {
        // Caches of which a flush writes nothing, and small ones of flash, which it need not write.
        ("flush", 1) => more = format!("defers=1 buffer_ms={}", 2 + seed % 29),
        ("flush", 3) => more = format!("buffer_ms=0 slc={small}"),
        ("throttling", _) => more = found::heat_of_the_second(seed).0,
        _ => {}
    }
    let truth = of_the_second(card, asked, slc, &more)?;
    Some((truth, Box::new(on_bench(card.kind, seed, &more, asked.writes))))
}

fn of_the_simulator(m: &Model, seed: u64, asked: &Asked) -> Option<Truth> {
    let mut d = still(m);
    Some(match asked.name {
        // With its stalls, without which a simulated card does more side by side.
        "queue" => {
            let gain = |reads| found::queue_gain(&mut SimDevice::new(m, m.card.capacity), reads);
            [(Q::QueueGain, gain(true)), (Q::QueueGainWrite, gain(false))].map(|(q, v)| (q, (v, 1.05))).into()
        }
        "flush" => {
            let has = |v: f64| if m.card.cache == 0 { f64::NAN } else { v };
            let waits = if m.card.flush_defers { 2.0 } else { 1.0 };
            flush(&mut d, has(m.card.cache as f64), has(waits))
        }
        "mixed-reads" => mixed_reads(&mut d),
        "throttling" => throttling(&mut d, found::with_heat(seed).1),
        "discard" => discard(&mut d, if m.card.discarded == Discarded::Zeros { 0.0 } else { 2.0 }),
        "pauses" => pauses(&mut d, m.slc.size),
        "slc-fill" => {
            let (fast, slow) = rates(m);
            if m.slc.size > 0 && fast < 1.4 * slow {
                return None;
            }
            slc_fill(m.truth().slc_cache as f64)
        }
        "steady-state" => {
            let long = found::steady(&mut SimDevice::new(m, m.card.capacity));
            steady(long, found::spare(m), found::amplification(m).0, found::onset(m))
        }
        name => panic!("{name} is not asked alone"),
    })
}

fn of_the_second(card: Card, asked: &Asked, slc: u64, more: &str) -> Option<Truth> {
    let t = told(card.kind, card.seed, more);
    let n = |key: &str| t[key].as_f64().unwrap_or(0.0);
    let on = |host: &str| on_bench(card.kind, card.seed, format!("{more} {host}").trim(), 1 << 40);
    let mut d = on("host=even");
    Some(match asked.name {
        // One request after the other.
        "queue" => [Q::QueueGain, Q::QueueGainWrite].map(|q| (q, (1.0, 1.05))).into(),
        "flush" if n("buffer_ms") > 0.0 => {
            let held = found::not_written(&mut on("defers=0 host=even"));
            flush(&mut d, held, if card.seed % 4 == 1 { 2.0 } else { 1.0 })
        }
        "flush" => flush(&mut d, f64::NAN, f64::NAN),
        "mixed-reads" => mixed_reads(&mut d),
        "throttling" => throttling(&mut d, found::heat_of_the_second(card.seed).1),
        // What was discarded reads as zeros.
        "discard" => discard(&mut d, 0.0),
        "pauses" => pauses(&mut d, slc),
        "slc-fill" => slc_fill(slc as f64),
        "steady-state" => {
            let per = (n("erase_block") / n("unit")).floor();
            let units = (n("size") / n("unit")).ceil();
            // Two erased blocks are kept, and the one being filled is half full.
            let blocks = (units * (1.0 + n("spare")) / per).floor() + 4.0 - 2.5;
            // Blocks are filled one after the other until two are left.
            let data = if t["filled"] == true { (units / per).ceil() } else { 0.0 };
            let onset = (blocks + 2.5 - data - 2.0) * per * 4096.0;
            let spare = 100.0 * (blocks * per / units - 1.0);
            steady(found::steady(&mut on("")), spare, amplification(card.kind, card.seed, more), onset)
        }
        name => panic!("{name} is not asked alone"),
    })
}

fn flush(d: &mut dyn Device, cache: f64, waits: f64) -> Truth {
    [(Q::FlushMs, (found::flush_ms(d), 1.1)), (Q::VolatileCache, (cache, 1.15)), (Q::FlushWaits, (waits, 1.0))].into()
}

/// Where nothing has to be waited for, nothing is said of its end; of reads that never are all alike nothing is known of it.
fn mixed_reads(d: &mut dyn Device) -> Truth {
    let (longer, until) = found::read_after_writes(d);
    let mut truth = Truth::from([(Q::ReadAfterWriteUs, (longer, 1.15))]);
    if longer == 0.0 || !until.is_nan() {
        truth.insert(Q::ReadSettlesMs, (if longer > 0.0 { until } else { f64::NAN }, 1.25));
    }
    truth
}

fn discard(d: &mut dyn Device, reads: f64) -> Truth {
    [(Q::DiscardMs, (found::discard_ms(d), 1.1)), (Q::DiscardReads, (reads, 1.0))].into()
}

fn pauses(d: &mut dyn Device, slc: u64) -> Truth {
    let (gain, pause) = found::pauses(d, slc);
    let mut truth = Truth::from([(Q::PauseGain, (gain, 1.1))]);
    // Of a gain about as small as what counts as none, nothing is said of the pause.
    if !(1.05..1.1).contains(&gain) {
        truth.insert(Q::PauseMs, (if gain < 1.05 { f64::NAN } else { pause }, 1.5));
    }
    truth
}

fn slc_fill(size: f64) -> Truth {
    [(Q::SlcCacheEmpty, (if size > 0.0 { size } else { f64::NAN }, 1.1))].into()
}

/// Of a card that does not get hot every bound is right.
fn throttling(d: &mut dyn Device, after: Option<f64>) -> Truth {
    let Some(seconds) = after else {
        return [(Q::ThrottledAfterS, (NO_LIMIT, 1.0)), (Q::RateThrottledMbS, (f64::NAN, 1.0))].into();
    };
    [(Q::ThrottledAfterS, (seconds, 1.25)), (Q::RateThrottledMbS, (found::rate_when_hot(d, seconds), 1.05))].into()
}

fn steady(s: Steady, spare: f64, amplified: f64, onset: f64) -> Truth {
    let rates = [Q::RandomWriteSteadyIops, Q::Steady16kIops, Q::Steady64kIops, Q::Steady75Iops, Q::Steady50Iops];
    let all = rates.into_iter().zip(s.full.into_iter().chain(s.part)).map(|(q, v)| (q, (v, 1.05)));
    let others = [(Q::DiscardRestores, (s.restored, 1.1)), (Q::OverProvisioning, (spare, 1.5)), (Q::WriteAmplification, (amplified, 1.2))];
    let others = others.into_iter().chain([(Q::CollectionOnset, (onset, 1.5))]);
    all.chain(others).collect()
}
