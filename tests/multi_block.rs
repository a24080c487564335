//! The experiment `multi-block` on the built-in cards, through the command interface of the simulated ones.

use nandscope::device::{Device, SimDevice};
use nandscope::experiment::run::{Limits, run};
use nandscope::experiment::{self, Setup};
use nandscope::finding::{Findings, Quantity};
use nandscope::samples::Ended;
use nandscope::units::Nanos;
use nandscope_sim::{Model, cards};
use std::sync::atomic::AtomicBool;

#[test]
fn it_runs_on_every_simulated_card() {
    let exp = experiment::by_name("multi-block").unwrap();
    let mut decided = 0;
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).unwrap();
        let mut device = SimDevice::new(&model, 3);
        let geometry = device.geometry().clone();
        let known = Findings::default();
        // Behind the flash it really has, a counterfeit card fails.
        let region = 0..model.truth().real_capacity.min(geometry.size);
        let setup = Setup { geometry: &geometry, region, known: &known, runs: &[], writes: u64::MAX };
        let stop = AtomicBool::new(false);
        let limits = Limits { deadline: Nanos(1_800_000_000_000), stop: &stop, seed: 5 };
        let run = run(exp, &setup, &mut device, &limits, &mut |_| {});
        assert!(!matches!(run.ended, Ended::Failed(_)), "{name}: {:?}", run.faults);
        for f in exp.infer(&run) {
            decided += u32::from(f.value.is_some());
            assert!(f.value.is_some() || f.reason.is_some(), "{name}: {f:?}");
            // What the model limits must not be exceeded.
            if f.quantity == Quantity::LargestRequest && model.host.max_request > 0 {
                let (limit, said) = (model.host.max_request as f64, f.number().or(f.at_least.map(|n| n.0)).unwrap_or(0.0));
                assert!(said <= limit, "{name}: {f:?}");
            }
        }
    }
    assert!(decided > cards::ALL.len() as u32, "{decided}");
}
