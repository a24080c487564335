//! What a driver could do for this card, as rules for its writes, each with what was measured. Nothing where nothing was.

use crate::finding::{Findings, Quantity};
use crate::layout::penalty::Penalties;
use crate::samples::Run;
use crate::units::{Bytes, KIB, three};

/// As for the advice.
const SURE: f64 = 0.75;

/// One rule a line; none where no measurement supports one.
pub fn driver(findings: &Findings, runs: &[Run]) -> Vec<String> {
    let p = Penalties::of(findings, runs);
    let value = |q| findings.value(q, SURE);
    let mut out = vec![];
    let first = value(Quantity::EraseBlockOffset).unwrap_or(0.0) as u64;
    if let Some(unit) = p.write_unit.filter(|&u| u > 4 * KIB) {
        let from = if first.is_multiple_of(unit) { String::new() } else { format!(", counted from byte {first}") };
        let times = [p.write_ms.get(&unit), p.write_ms.get(&(2 * unit))];
        // A second unit that costs nothing gives no reason to split.
        if let [Some(one), Some(two)] = times
            && two > one
        {
            out.push(format!(
                "write in multiples of {}{from}: measured {} ms for one unit and {} ms for two; split only what crosses a multiple, for \
                 a shorter write costs as much as a whole unit (try it: nandscope ab TARGET --b split={}KiB)",
                Bytes(unit),
                three(*one),
                three(*two),
                unit / KIB
            ));
        }
    }
    let cost = value(Quantity::CloseCostMs).filter(|ms| *ms >= 1.0);
    let open = value(Quantity::OpenAusRandom).or(value(Quantity::OpenAusLinear));
    if let (Some(ms), Some(n)) = (cost, open.filter(|n| *n < 4.0)) {
        let keeps = match n as u64 {
            0 => "takes no scattered writes without a merge".to_string(),
            n => format!("keeps {n} erase blocks open"),
        };
        let zone = value(Quantity::FatZone).filter(|z| *z > 0.0);
        let place =
            zone.map_or(String::new(), |z| format!(", or place it in the first {}, which take random writes well", Bytes(z as u64)));
        out.push(format!(
            "keep metadata away from the data stream{place}: the card {keeps}, and a merge takes {} ms. On eMMC, reliable writes for \
             metadata are worth a trial; what they cost was not measured",
            three(ms)
        ));
    }
    if let Some(n) = open.filter(|n| (1.0..64.0).contains(n)) {
        let merge = cost.map_or(String::new(), |ms| format!(" (measured: {} ms)", three(ms)));
        let s = if n == 1.0 { "stream at a time" } else { "streams interleaved" };
        out.push(format!("send requests of at most {n:.0} {s}; one more incurs a merge at each switch{merge}"));
    }
    out
}
