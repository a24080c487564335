//! What would decide the questions that are still open, by what the data show: the exact command.

use crate::device::{CardState, is_program};
use crate::finding::Quantity;
use crate::host::facts::TargetKind;
use crate::infer::pipeline::reads_flat;
use crate::saved::Report;
use crate::shell::word;
use crate::units::Bytes;

/// What `probe --write` takes where nothing else is asked for.
const COST: &str = " (60 s, up to 60 s more for the capacity; at most 1 GiB; the old content is put back)";

/// What only writes can say.
const BY_WRITES: [Quantity; 5] =
    [Quantity::WriteUnit, Quantity::OpenAusLinear, Quantity::OpenAusRandom, Quantity::CloseCostMs, Quantity::FatZone];

/// The probe that may write, with what else it needs.
fn probe(r: &Report, more: &str) -> String {
    let target = word(&r.settings.asked);
    let more = if more.is_empty() { String::new() } else { format!(" {more}") };
    match (r.target.kind, &r.target.serial) {
        (TargetKind::Simulated, _) => format!("nandscope probe {target}{more}"),
        (_, None) => format!("nandscope probe {target} --write --consent {}{more}", r.target.size),
        _ => {
            let prints = if is_program(&r.settings.asked) { "without --consent it prints the ID" } else { "nandscope list prints the ID" };
            format!("nandscope probe {target} --write --consent ID{more} ({prints})")
        }
    }
}

/// One sentence for each way out, the cheapest first.
pub fn ways(r: &Report) -> Vec<String> {
    let mut out = vec![];
    let open = |q: Quantity| r.findings.get(q).is_some_and(|f| f.value.is_none() && f.at_least.is_none());
    let asked = |q: Quantity| r.findings.get(q).is_some();
    // Pasted tables have no card behind them, and a card whose flash ends early has another trouble.
    if r.runs.is_empty() || r.settings.asked.is_empty() {
        return out;
    }
    let reads = r.runs.iter().any(|run| run.experiment == "read-boundary");
    let flat = r.runs.iter().filter_map(reads_flat).next_back() == Some(true);
    let block = open(Quantity::EraseBlock);
    let page = open(Quantity::Page);
    let fill = || {
        let undo = if r.target.kind == TargetKind::Simulated { "" } else { " --no-undo" };
        probe(r, &format!("--prepare random{undo}"))
    };
    // A card whose erase blocks begin off the grid has its pages there, too.
    let offset = r.findings.get(Quantity::EraseBlockOffset).and_then(|f| f.number()).map(|v| v as u64);
    if let Some(whole) = offset.filter(|v| page && !(v + r.target.offset).is_multiple_of(4096)) {
        let begins = format!("the first erase block begins at {}, off the grid on which pages are read across", Bytes(whole));
        let view = format!("losetup -f --show -o {whole}");
        out.push(match r.target.kind {
            _ if is_program(&r.settings.asked) => format!("{begins}; a program that adds {whole} to each address would show them"),
            TargetKind::Simulated => format!("{begins}; of a real card, a view that begins there shows them: {view} DEVICE"),
            _ => format!("{begins}; probe a view that begins there: {view} {}", word(&r.settings.asked)),
        });
    } else if reads && flat && (block || page) && r.settings.write {
        let what = if block { "the erase block and the page" } else { "the page" };
        match r.state {
            CardState::Fresh | CardState::Erased => out.push(format!(
                "the flash is {} and reads of empty flash show no boundaries; filling it first, which overwrites the whole region, would \
                 decide {what}: {}",
                if r.state == CardState::Fresh { "as it came, never written," } else { "erased," },
                fill()
            )),
            CardState::Unknown => out.push(format!(
                "if this card was never written, filling it first would decide {what}, and overwrites the whole region: {}",
                fill()
            )),
            CardState::Filled | CardState::Aged => {}
        }
    }
    if !r.settings.write && reads {
        let unwritten = BY_WRITES.iter().filter(|q| !asked(**q) || open(**q)).count();
        let text = match (block && flat, r.state) {
            (true, CardState::Filled | CardState::Aged) => {
                "the flash holds data, so this card hides its erase block from reads; small writes find it by what a merge costs"
            }
            (true, CardState::Unknown) => {
                "either this card hides its erase block from reads or it was never written; small writes find it by what a merge costs, and \
                 reads of what they wrote show the page"
            }
            (true, _) => {
                "reads of empty flash show no boundaries; small writes find the erase block by what a merge costs, and reads of what they \
                 wrote show the page"
            }
            _ => "only writes can measure the real capacity, the write unit, the open erase blocks and the merge cost",
        };
        if unwritten > 0 {
            let back = if r.target.kind == TargetKind::Simulated { "" } else { COST };
            out.push(format!("{text}{back}: {}", probe(r, "")));
        }
    }
    out
}
