use super::super::age::Plan;
use super::super::bench::{Measured, Workload};
use super::super::experiment::Settings;
use super::*;
use crate::units::Nanos;
use crate::volume::{Cache, Host, Label, Space};

fn condition(state: State, ms: &[(Kind, u64, &[f64])]) -> Condition {
    let mut measured = Measured::default();
    for &(kind, size, all) in ms {
        for (i, &t) in all.iter().enumerate() {
            measured.samples.push(Sample { kind, size, round: i as u32 + 1, took: Nanos((t * 1e6) as u64), extents: 1 });
        }
    }
    let space = Space { size: 100, free: 10, cluster: 1 };
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

#[test]
fn noise_is_told_from_effect() {
    let calm = [100.0, 101.0, 99.0, 100.0, 100.5, 99.5];
    let twice = calm.map(|t| 2.0 * t);
    let wild = [40.0, 300.0, 90.0, 100.0, 260.0, 60.0];
    let verdict = |a: &[f64], b: &[f64]| {
        let (a, b) = (condition(State::Fragmented, &[(Kind::Write, 512, a)]), condition(State::Blank, &[(Kind::Write, 512, b)]));
        effect(&a, &b, What::Write, 512).unwrap()
    };
    assert_eq!(verdict(&calm, &calm).verdict, Verdict::NoEffect);
    let e = verdict(&twice, &calm);
    assert_eq!(e.verdict, Verdict::Slower);
    assert!((e.ratio - 0.5).abs() < 0.01 && e.interval[0] > 0.45 && e.interval[1] < 0.55);
    assert_eq!(verdict(&calm, &twice).verdict, Verdict::Faster, "P11: an odd result stays visible");
    assert_eq!(verdict(&wild, &calm).verdict, Verdict::Undecided);
    assert_eq!(verdict(&twice[..2], &calm[..2]).verdict, Verdict::Undecided, "two rounds are no spread");
}

#[test]
fn combined_is_one_write_and_one_read() {
    let c = condition(State::Blank, &[(Kind::Write, 512, &[300.0; 4]), (Kind::Read, 512, &[100.0; 4])]);
    assert!((rate(&c, What::Combined, 512).unwrap().per_minute - 300.0).abs() < 1e-6);
    assert!(rate(&c, What::Combined, 4096).is_none() && rate(&c, What::Folder, 0).is_none());
}

#[test]
fn a_profile_takes_the_line_between_the_sizes() {
    let a = condition(State::Fragmented, &[(Kind::Write, 1024, &[100.0; 3]), (Kind::Write, 4096, &[400.0; 3])]);
    let b = condition(State::Defragmented, &[(Kind::Write, 1024, &[100.0; 3]), (Kind::Write, 4096, &[100.0; 3])]);
    let lab = lab(vec![a, b]);
    let p = parse_profile("p", "# mine\nwrite 2KiB 2\n\nwrite 2KiB\n").unwrap();
    assert_eq!(p.operations.len(), 2);
    let g = gain(&lab, &lab.conditions[0], &lab.conditions[1], &p).unwrap();
    assert!((g.times - 2.0).abs() < 1e-9 && g.outside == 0.0);
    let far = parse_profile("p", "write 1MiB").unwrap();
    assert_eq!(gain(&lab, &lab.conditions[0], &lab.conditions[1], &far).unwrap().outside, 1.0);
    for bad in ["", "delete 5", "write", "write 0", "write 4KiB -1", "write 4KiB x", "write 4KiB 1 2"] {
        assert!(parse_profile("p", bad).is_err(), "{bad}");
    }
}
