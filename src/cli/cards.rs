//! `nandscope cards`: the built-in simulated cards; one of them whole; a model file checked.

use super::args::Json;
use crate::device::{SimCard, Target};
use crate::report::terminal::lines;
use crate::units::{Bytes, as_sold};
use anyhow::Context;
use clap::{Args, Subcommand};
use nandscope_sim::{Model, cards};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct CardsArgs {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// List the built-in cards, as `cards` alone does
    List,
    /// Print a card's model: how it works and where each figure comes from
    Show {
        /// A built-in card, the model file PATH.toml, or sim:random?seed=N, sim:unusual?seed=N, sim:random-today?seed=N
        card: String,
        #[command(flatten)]
        json: Json,
    },
    /// Check a model file and print the truth that follows from it
    Check {
        /// A card model (TOML; the format is in FORMATS.md)
        file: PathBuf,
    },
}

pub fn run(a: CardsArgs) -> anyhow::Result<ExitCode> {
    match a.what {
        None | Some(What::List) => {
            // On a narrow screen what a card is stands below its name.
            let indent = if super::width() < 70 { 4 } else { 41 };
            for (name, text) in cards::ALL {
                let m = Model::parse(text, name)?;
                let mut about = lines(&m.about, super::width().saturating_sub(indent)).into_iter();
                let beside = if indent == 41 { about.next().unwrap_or_default() } else { String::new() };
                say!("{}", format!("{name:<19}{:<22}{beside}", as_sold(m.card.capacity)).trim_end());
                about.for_each(|l| say!("{:indent$}{l}", ""));
            }
        }
        Some(What::Show { card, json }) => {
            let SimCard { model, text, seed, .. } = Target::card(&card, None)?;
            if json.asked() {
                let all = serde_json::json!({
                    "schema": "nandscope-card/1", "name": model.name, "about": model.about, "seed": seed, "size": model.card.capacity,
                    "truth": model.truth(), "model": text,
                });
                if json.put(&all)? {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            super::as_it_is(&text);
            say!("\n# The truth that follows from it");
            truth(&model);
        }
        Some(What::Check { file }) => {
            let name = file.display().to_string();
            let text = crate::device::model_text(&file).with_context(|| format!("cannot read {name}"))?;
            let m = Model::parse(&text, &name)?;
            say!("{name}: a valid card, {}", as_sold(m.card.capacity));
            truth(&m);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One line a quantity, in the words of the findings.
fn truth(m: &Model) {
    let t = m.truth();
    let size = |b: u64| if b == 0 { "none".to_string() } else { Bytes(b).to_string() };
    let count = |n: Option<u32>| n.map_or("no limit".into(), |n| n.to_string());
    for (what, value) in [
        ("erase block", size(t.erase_block)),
        ("alignment offset", Bytes(t.erase_block_offset).to_string()),
        ("page", size(t.page)),
        ("multi-plane page", size(t.access_unit)),
        ("write unit", size(t.write_unit)),
        ("open AUs, sequential", count(t.open_aus_linear)),
        ("open AUs, random", count(t.open_aus_random)),
        ("merge cost", t.close_cost_ns.map_or("none".into(), |ns| format!("{:.1} ms", ns as f64 / 1e6))),
        ("FAT zone", size(t.fat_zone)),
    ] {
        say!("# {what:<22}{value}");
    }
}
