//! `bench-card KIND SEED [NAME=VALUE]... [--truth|--amplification]`: a flash card behind standard input and output.
//!
//! One request a line, one answer a line, as docs/exec.md has it. `--truth` prints what is inside instead, as JSON, `--amplification` what random writes
//! come to inside a card that maps by page. A card of its own family: written from
//! data sheets and papers on flash translation layers (BAST, FAST, superblocks, DFTL), without a look at the simulator whose detectors it judges.

mod card;
mod chance;
mod device;
mod front;
mod host;
mod logs;
mod pages;
mod store;

use card::{Card, KINDS, Mapping};
use chance::Chance;
use device::Device;
use host::Host;
use pages::Pages;
use std::io::{BufRead, BufReader, Write};

fn main() {
    if let Err(e) = run() {
        eprintln!("bench-card: {e}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let (mut words, mut truth, mut amplification) = (Vec::new(), false, false);
    for a in std::env::args().skip(1) {
        match a.as_str() {
            "--truth" => truth = true,
            "--amplification" => amplification = true,
            _ => words.push(a),
        }
    }
    let usage = || format!("usage: bench-card KIND SEED [NAME=VALUE]... [--truth|--amplification]\nKIND is one of {}", KINDS.join(" "));
    let [kind, seed, rest @ ..] = words.as_slice() else {
        return Err(usage());
    };
    let seed = seed.parse().map_err(|_| format!("SEED {seed} is no whole number"))?;
    let mut chance = Chance::new(seed);
    let mut card = Card::draw(kind, &mut chance).ok_or_else(usage)?;
    let mut host = Host::draw(&mut chance);
    for word in rest {
        match word.split_once('=') {
            Some(("host", "quiet")) => host = Host::quiet(),
            Some(("host", "frames")) => host = Host::quiet().at_frames(),
            Some(("host", "even")) => host = host.even(),
            Some((key, value)) if card.set(key, value) => {}
            _ => return Err(format!("{word} is no parameter of a card")),
        }
    }
    if truth {
        println!("{}", tell(kind, seed, &card, &host));
        return Ok(());
    }
    if amplification {
        if card.mapping != Mapping::Page {
            return Err(format!("{kind} does not map by page"));
        }
        println!("{:.4}", Pages::amplification(&card, &mut chance));
        return Ok(());
    }
    serve(Device::new(card, host, chance), &format!("{kind} {seed}"))
}

fn serve(mut device: Device, name: &str) -> Result<(), String> {
    let mut input = BufReader::with_capacity(1 << 16, std::io::stdin().lock());
    let mut output = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let size = device.card.size;
    let say = |e: std::io::Error| e.to_string();
    writeln!(
        output,
        "nandscope-device 1 size={size} sector=512 content=yes ahead=64 write_cache={} name={name}",
        if device.card.buffer > 0.0 { "yes" } else { "no" }
    )
    .map_err(say)?;
    output.flush().map_err(say)?;
    let (mut line, mut more) = (String::new(), String::new());
    loop {
        line.clear();
        if input.read_line(&mut line).map_err(say)? == 0 {
            return Ok(());
        }
        more.clear();
        let mut f = line.split_ascii_whitespace();
        let what = f.next().unwrap_or("");
        let mut number = || f.next().and_then(|n| n.parse::<u64>().ok());
        let times = match what {
            "q" => return Ok(()),
            "f" => Ok(device.flush()),
            "i" => number().map(|ns| device.idle(ns)).ok_or("i needs ns"),
            "r" | "w" | "d" => match (number(), number()) {
                (Some(at), Some(len)) if len > 0 && at.checked_add(len).is_some_and(|e| e <= size) => match what {
                    "r" => {
                        device.found(at, len, &mut more);
                        Ok(device.read(at, len))
                    }
                    "d" => Ok(device.discard(at, len)),
                    _ => f.next().map(|fill| device.write(at, len, fill)).ok_or("w needs a fill"),
                },
                _ => Err("outside the device"),
            },
            _ => Err("unknown request"),
        };
        match times {
            Ok((start, took)) => writeln!(output, "{start} {took}{more}"),
            Err(why) => writeln!(output, "! {why}"),
        }
        .map_err(say)?;
        if input.buffer().is_empty() {
            output.flush().map_err(say)?;
        }
    }
}

fn tell(kind: &str, seed: u64, card: &Card, host: &Host) -> String {
    let mapping = match card.mapping {
        Mapping::Block => "block",
        Mapping::Pool => "pool",
        Mapping::Page => "page",
    };
    let logs = card.mapping == Mapping::Block;
    let count = |n: usize| if logs { n.to_string() } else { "null".into() };
    // On a card that was never written a merge copies what was written since.
    let merges = card.mapping != Mapping::Page && card.filled;
    let merge = if merges { format!("{:.3}", card.full_merge() / 1e6) } else { "null".into() };
    // AUs of the FAT zone need no log block.
    let zone = if card.mapping == Mapping::Page { 0 } else { card.start_of(card.fat) };
    let cut = if host.cut == u64::MAX { "null".into() } else { host.cut.to_string() };
    format!(
        "{{\"kind\":\"{kind}\",\"seed\":{seed},\"size\":{},\"real\":{},\"mapping\":\"{mapping}\",\"erase_block\":{},\"offset\":{},\"page\":{},\"unit\":{},\
         \"open_sequential\":{},\"open_random\":{},\"merge_ms\":{merge},\"switch_ms\":{:.3},\"filled\":{},\"slc\":{},\"map_reach\":{},\"fat\":{},\
         \"map_piece\":{},\"map_miss_us\":{:.3},\"map_miss_write_us\":{:.3},\"empties_mb_s\":{:.4},\"buffer_ms\":{:.3},\"read_ahead\":{},\"slope\":{:.4},\"free_streams\":{},\"spare\":{:.4},\
         \"host\":{{\"name\":\"{}\",\"command_us\":{:.1},\"cut\":{cut},\"join\":{},\"core\":{:.4},\"late\":{:.4}}}}}",
        card.size,
        card.real,
        card.block,
        card.offset,
        card.page,
        card.unit,
        count(card.open),
        count(card.random),
        card.switch / 1e6,
        card.filled,
        card.slc,
        card.reach,
        zone,
        card.segment,
        card.fetch() / 1e3,
        // What was changed of the piece that makes room is saved first.
        (card.fetch() + card.program) / 1e3,
        card.unit as f64 * 1e3 / card.copy_unit(),
        card.buffer / 1e6,
        card.ahead,
        card.slope,
        card.free_streams,
        card.spare,
        host.name,
        host.command / 1e3,
        host.join,
        host.core,
        host.late,
    )
}
