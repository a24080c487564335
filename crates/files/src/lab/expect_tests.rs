//! covers: P4, P11, P12, P15

use super::super::bench::{Kind, Measured, Sample, Workload};
use super::super::class::{self, Piece};
use super::super::experiment::Settings;
use super::*;
use crate::device::{Device, SimDevice};
use crate::lab::age::Plan;
use crate::units::{KIB, MIB, Nanos};
use crate::volume::{Cache, Host, Space};
use nandscope_sim::{Model, cards};

/// A state with times in ms at each size, written and read alike.
fn condition(state: State, cluster: u64, ms: &[(u64, Vec<f64>)]) -> Condition {
    let mut measured = Measured::default();
    for (size, all) in ms {
        for (i, t) in all.iter().enumerate() {
            let took = Nanos((t * 1e6) as u64);
            measured.samples.extend([Kind::Write, Kind::Read].map(|kind| Sample {
                kind,
                size: *size,
                round: i as u32 + 1,
                took,
                extents: 1,
            }));
        }
    }
    let space = Space { size: 1 << 28, free: 1 << 25, cluster };
    Condition { state, fragmentation: Default::default(), map: Default::default(), space, defragmented: None, measured, prepared: 0.0 }
}

fn lab(conditions: Vec<Condition>) -> Lab {
    let settings = Settings {
        plan: Plan::default(),
        workload: Workload::default(),
        states: vec![],
        erase: true,
        cluster: None,
        host: Host::with(Cache::TABLES),
        au: 1,
    };
    Lab { conditions, ..Lab::new("t", Label::InProcess, &settings) }
}

/// Six rounds about `t` ms that waver by the share `noise`.
fn rounds(rng: &mut Pcg64Mcg, t: f64, noise: f64) -> Vec<f64> {
    (0..6).map(|_| t * (1.0 + noise * (2.0 * (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 1.0))).collect()
}

/// Where the effect begins, whatever the cluster and wherever it begins.
#[test]
fn the_effect_begins_where_it_does() {
    let all = [512, 32 * KIB, 256 * KIB, 2 * MIB];
    for cluster in [512, 1024, 4096, 32 * KIB] {
        for from in 0..=4 {
            let mut rng = Pcg64Mcg::new(7);
            let times = |slow: f64, rng: &mut Pcg64Mcg| -> Vec<(u64, Vec<f64>)> {
                all.iter().enumerate().map(|(i, &s)| (s, rounds(rng, 100.0 * if i >= from { slow } else { 1.0 }, 0.01))).collect()
            };
            let frag = condition(State::Fragmented, cluster, &times(3.0, &mut rng));
            let lab = lab(vec![frag, condition(State::Defragmented, cluster, &times(1.0, &mut rng))]);
            let o = onset(&lab, What::Write).unwrap();
            let expected = [None, Some(512), Some(32 * KIB), Some(256 * KIB), Some(2 * MIB)];
            assert_eq!((o.none, o.from), (expected[from], all.get(from).copied()), "{cluster}: {o:?}");
            assert_eq!(o.saturated, all.get(from).copied());
            // A file of a cluster that is slower in pieces is an anomaly, and visible as one.
            let small = all.iter().position(|&s| s > cluster).unwrap_or(4);
            assert_eq!(o.small, Some(from >= small), "{cluster}, from {from}");
            assert_eq!(anomalies(&lab).len(), 2 * small.saturating_sub(from), "{cluster}, from {from}");
            assert!(anomalies(&lab).iter().all(|a| a.sure));
        }
    }
}

/// A card that wavers and does not care: no anomaly is claimed beyond the error that is allowed, at any noise.
#[test]
fn noise_is_no_anomaly() {
    for noise in [0.05, 0.2, 0.5] {
        let (mut claimed, mut seen) = (0, 0);
        for seed in 0..60u64 {
            let mut rng = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
            let mut state = |s: State| {
                let ms: Vec<_> = [512, 32 * KIB, 256 * KIB, 2 * MIB].iter().map(|&n| (n, rounds(&mut rng, 50.0, noise))).collect();
                condition(s, 1024, &ms)
            };
            let lab = lab(vec![state(State::Fragmented), state(State::Defragmented), state(State::Blank)]);
            let all = anomalies(&lab);
            seen += usize::from(!all.is_empty());
            claimed += usize::from(all.iter().any(|a| a.sure));
        }
        // 5 % of 60 are 3; 8 or more come by chance in one of a hundred.
        assert!(claimed < 8, "noise {noise}: {claimed} of 60 claim an anomaly");
        // At the larger noise some look like one, and are shown as what may be noise.
        assert!(noise < 0.4 || seen > claimed, "{seen} {claimed}");
    }
}

/// The page's own: at 512 B fragmented is faster than defragmented. It is kept, and told from noise by its rounds.
#[test]
fn an_odd_result_is_kept_and_said_to_be_sure_only_with_enough_rounds() {
    let of = |rounds: usize| {
        let waver = |t: f64| (0..rounds).map(|i| t * (1.0 + 0.01 * (i % 3) as f64)).collect::<Vec<f64>>();
        let frag = condition(State::Fragmented, 1024, &[(512, waver(80.0))]);
        let defrag = condition(State::Defragmented, 1024, &[(512, waver(100.0))]);
        anomalies(&lab(vec![frag, defrag, condition(State::Blank, 1024, &[(512, waver(60.0))])]))
    };
    let six = of(6);
    assert_eq!(six.len(), 2, "writing and reading; slower than blank is what is expected: {six:?}");
    assert!(six.iter().all(|a| a.sure && a.effect.verdict == Verdict::Faster && a.effect.against == State::Defragmented), "{six:?}");
    assert!((six[0].chance - 1.0 / 924.0).abs() < 1e-9, "one of all 924 ways to part twelve times: {}", six[0].chance);
    // The default run: three states, four sizes and a folder, six rounds; it can be sure.
    assert!(six[0].chance * 29.0 < WRONG);
    assert!(of(3).iter().all(|a| !a.sure), "three rounds can come out so by chance");
    assert!(of(10).iter().all(|a| a.sure), "drawn permutations");
}

#[test]
fn large_clusters_hide_and_nothing_else_is_blamed_on_them() {
    let mut rng = Pcg64Mcg::new(3);
    let mut of = |cluster: u64, slow: f64, share: u32| {
        let mut frag = condition(State::Fragmented, cluster, &[(256 * KIB, rounds(&mut rng, 100.0 * slow, 0.01))]);
        (frag.fragmentation.files, frag.fragmentation.fragmented) = (100, share);
        hidden(&lab(vec![frag, condition(State::Defragmented, cluster, &[(256 * KIB, rounds(&mut rng, 100.0, 0.01))])]))
    };
    assert_eq!(of(16 * KIB, 1.0, 73).map(|h| (h.cluster, h.chunk)), Some((16 * KIB, 8 * KIB)));
    assert!(of(8 * KIB, 1.0, 73).is_some());
    assert_eq!(of(1024, 1.0, 73), None, "small clusters hide nothing: this card does not care");
    assert_eq!(of(16 * KIB, 2.0, 73), None, "there is an effect");
    assert_eq!(of(16 * KIB, 1.0, 2), None, "nothing is in pieces");
}

/// T = R + E + W against cards whose times are known: what is added is the copying and the erasing of the model, and follows them.
#[test]
fn read_erase_write_is_tested() {
    let measured = |name: &str, more: &str| {
        let text = cards::text(name).unwrap().replace("erase = \"2 ms\"", more);
        let mut device = SimDevice::new(&Model::parse(&text, name).unwrap(), 1).with_content();
        let size = device.geometry().size.min(64 * MIB);
        class::measure(&mut device, 0..size, MIB, 16 * KIB, 8 * KIB, 1).unwrap()
    };
    for (erase, ms) in [("erase = \"2 ms\"", 2.0), ("erase = \"5 ms\"", 5.0), ("erase = \"500 us\"", 0.5)] {
        let r = read_erase_write(&measured("cf-256mb", erase)).unwrap();
        assert_eq!(r.verdict, Claim::Holds, "{r:?}");
        // 512 B of a block of 16 KiB: 31 pages of 340 us are copied.
        let known = 31.0 * 0.34 + ms;
        assert!((r.rest[0] / known - 1.0).abs() < 0.1 && r.rest[1] / known < 1.25, "{known}: {r:?}");
    }
    // A page-mapped card writes used flash as fast as erased flash.
    for name in ["modern-a1-32gb", "modern-a2-64gb"] {
        if cards::text(name).is_some() {
            assert_eq!(read_erase_write(&measured(name, "")).unwrap().verdict, Claim::Fails, "{name}");
        }
    }
    // Where the times are all alike nothing is tested, and without discards nothing is known.
    let piece = |len, t, w| Piece { len, apart: t, in_order: t, erased: w };
    let of = |pieces: Vec<Piece>| read_erase_write(&Class { pieces, ..measured("cf-256mb", "erase = \"2 ms\"") }).map(|r| r.verdict);
    assert_eq!(of(vec![piece(512, 14.0, Some(2.0)), piece(4096, 20.0, Some(2.1))]), Some(Claim::Undecided));
    assert_eq!(of(vec![piece(512, 14.0, Some(2.0)), piece(8192, 140.0, Some(20.0))]), Some(Claim::Fails), "in proportion");
    assert_eq!(of(vec![piece(512, 14.0, None), piece(4096, 20.0, None)]), None);
}

#[test]
fn a_claim_of_so_many_times_is_answered() {
    let mut rng = Pcg64Mcg::new(5);
    let mut of = |slow: f64, noise: f64| {
        let frag =
            condition(State::Fragmented, 1024, &[(512, rounds(&mut rng, 10.0, 0.01)), (2 * MIB, rounds(&mut rng, 100.0 * slow, noise))]);
        lab(vec![
            frag,
            condition(State::Defragmented, 1024, &[(512, rounds(&mut rng, 10.0, 0.01)), (2 * MIB, rounds(&mut rng, 100.0, noise))]),
        ])
    };
    let (four, forty, about) = (of(4.0, 0.02), of(40.0, 0.02), of(30.0, 0.4));
    assert_eq!((claimed(&four, 30.0), claimed(&forty, 30.0), claimed(&about, 30.0)), (Claim::Fails, Claim::Holds, Claim::Undecided));
    let w = worst(&four).unwrap();
    assert!(w.size == 2 * MIB && (0.24..0.26).contains(&w.ratio), "{w:?}");
    assert_eq!(claimed(&lab(vec![]), 30.0), Claim::Undecided);
}
