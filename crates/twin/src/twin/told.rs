//! What is said of a structure: its price in parameters, and its parts in words.

use nandscope_sim::Model;
use nandscope_sim::model::{Copies, Evict, FtlKind, GcWhen, LogOrder, MergeRandom, Unwritten};

/// Settings beyond the simplest structure; each is a parameter that has to pay for itself.
pub fn features(m: &Model) -> usize {
    let (c, n, f) = (&m.card, &m.nand, &m.ftl);
    let mut on = vec![
        n.page > c.sector,
        n.access_unit > n.page,
        n.erase_block_offset > 0,
        n.pipelined,
        n.pipelined && n.one_ahead,
        n.unwritten == Unwritten::Flat,
        c.read_ahead > 0,
        c.combine,
        c.combine_after > 0,
        c.combine_streams > 1,
        c.combine && c.combine_starts,
        c.overlap,
        c.behind > 0,
        c.streams > 0,
        c.streams > 0,
        c.streams > 0 && c.stream_table > 0,
        m.host.max_request > 0,
        n.write_unit != n.access_unit,
        m.slc.size > 0,
        m.wear.static_every > 0,
        m.slc.size > 0 && m.slc.background,
        c.cache > 0,
        f.kind != FtlKind::None,
    ];
    match f.kind {
        FtlKind::BlockMap => {
            let b = &f.block;
            on.extend([
                true,
                b.open_random != b.open_linear,
                b.evict != Evict::Lru,
                b.evict == Evict::Counter,
                b.protect > 0,
                b.protect > 0 && b.protected > 0,
                b.merge_span > 0,
                b.copies != Copies::All,
                b.skips,
                b.fills,
                b.begins_full,
                b.full_closes,
                b.restarts,
                b.merge_random == MergeRandom::Whole,
                b.fat_zone > 0,
                b.small_log > 0,
                b.small_log > 0,
            ]);
        }
        FtlKind::LogBlock => {
            let l = &f.log;
            on.extend([true, l.group != 1, l.per_group > 1, l.sequential, l.order == LogOrder::InOrder, l.evict != Evict::Lru]);
        }
        FtlKind::WriteThrough => on.extend([f.through.buffer > 0, f.through.fat_zone > 0]),
        FtlKind::PageMap => on.extend([f.page.map_cache > 0, f.page.map_cache > 0, f.page.when != GcWhen::Foreground]),
        FtlKind::None => {}
    }
    on.into_iter().filter(|x| *x).count()
}

/// What is said of a structure: name and value of each part, in plain words.
pub fn parts(m: &Model) -> Vec<(&'static str, String)> {
    use crate::units::Bytes;
    let size = |b: u64| Bytes(b).to_string();
    let n = &m.nand;
    let mut out = vec![
        ("page", size(n.page)),
        ("multi-plane page", size(n.access_unit)),
        ("write unit", size(n.write_unit)),
        ("erase block", size(n.erase_block)),
        ("alignment offset", size(n.erase_block_offset)),
    ];
    let policy = |e: Evict| match e {
        Evict::Lru => "least recently used",
        Evict::Fifo => "first opened",
        Evict::Random => "at random",
        Evict::Counter => "by a counter of writes",
    };
    match m.ftl.kind {
        FtlKind::None => out.push(("mapping", "none seen: the place of a write does not matter".into())),
        FtlKind::BlockMap => {
            let b = &m.ftl.block;
            out.push(("mapping", "block-mapped with open erase blocks".into()));
            out.push(("open AUs, sequential", b.open_linear.to_string()));
            out.push(("open AUs, random", b.open_random.to_string()));
            out.push(("evicts", policy(b.evict).into()));
            if b.fat_zone > 0 {
                out.push(("FAT zone", size(b.fat_zone)));
            }
            match b.copies {
                Copies::All => {}
                Copies::Held => out.push(("a merge copies", "only what was ever written".into())),
                Copies::Blocks => out.push(("a merge copies", "nothing of an erase block that was never written".into())),
            }
            if b.begins_full {
                out.push(("a log begins with", "what lies before the first write, copied at once".into()));
            }
            if b.full_closes {
                out.push(("a log that is used up", "closes its erase block".into()));
            }
            if b.restarts {
                out.push(("a write at the start", "merges an erase block that is open in order".into()));
            }
            if b.skips || b.fills {
                let then = if b.fills { "sequential, what lies between copied at once" } else { "sequential" };
                out.push(("writes further on", then.into()));
            }
            if b.small_log > 0 {
                out.push(("small writes", format!("up to {} to a log of {}", size(b.small_write), size(b.small_log))));
            }
        }
        FtlKind::LogBlock => {
            let l = &m.ftl.log;
            out.push(("mapping", format!("block-mapped with {} log blocks", l.pool)));
            let shared = match l.group {
                0 => "by all erase blocks".into(),
                1 => "by none".into(),
                g => format!("by {g} erase blocks"),
            };
            out.push(("log blocks shared", shared));
            out.push(("evicts", policy(l.evict).into()));
        }
        FtlKind::WriteThrough => {
            let b = m.ftl.through.buffer;
            let when = if b > 0 { format!(", at multiples of {}", size(b)) } else { ", at the end of each write".into() };
            out.push(("mapping", format!("no log blocks (read-modify-write){when}")));
        }
        FtlKind::PageMap => {
            out.push(("mapping", "page-mapped".into()));
            if m.ftl.page.map_cache > 0 {
                out.push(("mapping cache", format!("{} of the card", size(m.ftl.page.map_cache))));
            }
        }
    }
    for (name, bytes) in [
        ("cuts requests at", m.host.max_request),
        ("reads ahead", m.card.read_ahead),
        ("SLC cache", m.slc.size),
        ("write cache", m.card.cache),
    ] {
        if bytes > 0 {
            out.push((name, size(bytes)));
        }
    }
    if m.card.combine {
        let side = if m.card.combine_streams > 1 { format!(", of {} streams side by side", m.card.combine_streams) } else { String::new() };
        let starts = if m.card.combine_starts { ", from its start on" } else { "" };
        out.push(("small writes in sequence", format!("coalesced to a write unit{starts}{side}")));
    }
    if m.card.overlap {
        out.push(("data of writes", "come in while the units before are programmed".into()));
    }
    if m.card.behind > 0 {
        let how_much = if m.host.flushes {
            "when a write is acknowledged; the flush waits for it".into()
        } else {
            format!("up to {} when a write is acknowledged", super::text::time(m.card.behind as f64))
        };
        out.push(("work left undone", how_much));
    }
    if m.host.flushes {
        out.push(("after each write", "the host sends a flush".into()));
    }
    if m.card.streams > 0 {
        out.push(("streams at the full rate", m.card.streams.to_string()));
    }
    if m.wear.static_every > 0 {
        out.push(("wear levelling moves a block", format!("after {} erasures", m.wear.static_every)));
    }
    if n.pipelined {
        out.push(("reads", "sense the next unit while one is sent".into()));
    }
    out
}
