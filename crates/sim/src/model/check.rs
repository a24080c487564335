//! What one key of a model alone cannot show.

use super::{Beyond, Evict, FtlKind, LogOrder, Model};

impl Model {
    /// What one key alone cannot show.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let (c, n, h) = (&self.card, &self.nand, &self.host);
        let multiple = |key: &'static str, x: u64, of: u64, what: &str| {
            if x.is_multiple_of(of) { Ok(()) } else { Err((key, format!("{x} is not a multiple of {what} ({of})"))) }
        };
        if self.name.is_empty() || !self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return Err(("name", "must be one word of letters, digits, '-', '_' and '.'".into()));
        }
        if c.sector != 512 && c.sector != 4096 {
            return Err(("card.sector", format!("{} is neither 512 nor 4096", c.sector)));
        }
        multiple("card.capacity", c.capacity, c.sector, "card.sector")?;
        multiple("card.real_capacity", c.real_capacity, c.sector, "card.sector")?;
        if c.real_capacity > c.capacity {
            return Err(("card.real_capacity", "is larger than card.capacity".into()));
        }
        multiple("card.repeats", c.repeats, c.sector, "card.sector")?;
        if c.repeats > 0 && (c.repeats < c.real_capacity || c.beyond == Beyond::Wrap) {
            return Err(("card.repeats", "is at least card.real_capacity, and card.beyond says what lies between: drop or error".into()));
        }
        for a in &self.area {
            let shows = if a.does == Beyond::Wrap { a.shows } else { 0 };
            for (key, bytes) in [("area.at", a.at), ("area.len", a.len), ("area.shows", a.shows)] {
                multiple(key, bytes, c.sector, "card.sector")?;
            }
            for (key, from) in [("area.at", a.at), ("area.shows", shows)] {
                if from >= c.capacity {
                    return Err((key, "lies past the card".into()));
                }
                if a.len > c.capacity - from {
                    return Err(("area.len", format!("leaves the card from {key} on")));
                }
            }
        }
        multiple("nand.page", n.page, c.sector, "card.sector")?;
        multiple("nand.access_unit", n.access_unit, n.page, "nand.page")?;
        multiple("nand.write_unit", n.write_unit, c.sector, "card.sector")?;
        multiple("nand.erase_block", n.erase_block, n.access_unit, "nand.access_unit")?;
        multiple("nand.erase_block", n.erase_block, n.write_unit, "nand.write_unit")?;
        multiple("nand.erase_block_offset", n.erase_block_offset, c.sector, "card.sector")?;
        if n.erase_block_offset >= n.erase_block {
            return Err(("nand.erase_block_offset", "must be smaller than nand.erase_block".into()));
        }
        if n.erase_block > c.capacity {
            return Err(("nand.erase_block", "is larger than card.capacity".into()));
        }
        // What a card keeps in memory grows with these; a slip of the pen must not take the machine down.
        let (blocks, units) = (c.capacity / n.erase_block, n.erase_block / n.write_unit);
        if blocks > 1 << 24 {
            return Err(("nand.erase_block", format!("makes {blocks} erase blocks; at most 2^24 are simulated")));
        }
        // Sums of times must stay far below 2^64 ns.
        for (key, time) in [("nand.program", n.program), ("nand.copy", n.copy)] {
            if units * time > 3_600_000_000_000 {
                return Err((key, format!("times {units} write units an erase block is more than an hour")));
            }
        }
        for (key, rate) in [
            ("host.rate", h.rate),
            ("card.rate", c.rate),
            ("nand.rest_rate", n.rest_rate),
            ("nand.load_rate", n.load_rate),
            ("card.stream_rate", c.stream_rate),
        ] {
            if (1..1000).contains(&rate) {
                return Err((key, format!("{rate} B/s is below 1 kB/s; 0 means no limit")));
            }
        }
        multiple("host.max_request", h.max_request, c.sector, "card.sector")?;
        if h.tail_every > 0 && h.tail == 0 {
            return Err(("host.tail", "must be given where host.tail_every is".into()));
        }
        if h.tail_cap < h.tail {
            return Err(("host.tail_cap", "is smaller than host.tail".into()));
        }
        if self.slc.size > c.capacity {
            return Err(("slc.size", "is larger than card.capacity".into()));
        }
        if self.slc.least > self.slc.size {
            return Err(("slc.least", "is larger than slc.size".into()));
        }
        if self.ftl.kind == FtlKind::None && self.wear != Default::default() {
            return Err(("wear", "is followed only where ftl.kind is not none".into()));
        }
        let zone = match self.ftl.kind {
            FtlKind::BlockMap => self.ftl.block.fat_zone,
            FtlKind::WriteThrough => self.ftl.through.fat_zone,
            _ => 0,
        };
        if zone > c.capacity {
            return Err(("ftl.fat_zone", "is larger than card.capacity".into()));
        }
        if self.wear.bad > 0 && self.ftl.kind != FtlKind::PageMap && self.wear.bad >= self.wear.spare {
            return Err(("wear.bad", "leaves no spare block (wear.spare)".into()));
        }
        match self.ftl.kind {
            FtlKind::None => {}
            FtlKind::BlockMap => {
                let b = &self.ftl.block;
                if units * b.open_linear > 1 << 32 {
                    return Err(("ftl.open_linear", format!("times {units} write units an AU is more than 2^32")));
                }
                if b.open_random > b.open_linear {
                    return Err(("ftl.open_random", "is larger than ftl.open_linear: an AU in random order is an open AU".into()));
                }
                if b.groups > b.open_linear {
                    return Err(("ftl.groups", "is larger than ftl.open_linear".into()));
                }
                if b.merge_span > 0 {
                    multiple("ftl.merge_span", b.merge_span, n.write_unit, "nand.write_unit")?;
                    multiple("nand.erase_block", n.erase_block, b.merge_span, "ftl.merge_span")?;
                }
                multiple("ftl.fat_zone", b.fat_zone, c.sector, "card.sector")?;
                if (b.small_write > 0) != (b.small_log > 0) || (b.small_log > 0 && b.small_log < n.write_unit) {
                    return Err(("ftl.small_log", "small_write and small_log go together, with room for a write unit".into()));
                }
            }
            FtlKind::LogBlock => {
                if units * self.ftl.log.pool > 1 << 26 {
                    return Err(("ftl.pool", format!("times {units} write units a block is more than 2^26")));
                }
                if self.ftl.log.order == LogOrder::InOrder && self.ftl.log.sequential {
                    return Err(("ftl.sequential", "adds nothing where ftl.order is in-order".into()));
                }
                if self.ftl.log.evict == Evict::Counter {
                    return Err(("ftl.evict", "counter is not for log-block".into()));
                }
                if c.capacity / n.write_unit > 1 << 27 {
                    return Err((
                        "nand.write_unit",
                        "makes more than 2^27 units, the most that log-block simulates; take a larger one".into(),
                    ));
                }
            }
            FtlKind::WriteThrough => {
                let t = &self.ftl.through;
                multiple("ftl.fat_zone", t.fat_zone, c.sector, "card.sector")?;
                multiple("ftl.buffer", t.buffer, c.sector, "card.sector")?;
            }
            FtlKind::PageMap => {
                let p = &self.ftl.page;
                multiple("ftl.unit", p.unit, c.sector, "card.sector")?;
                multiple("nand.erase_block", n.erase_block, p.unit, "ftl.unit")?;
                let spare = ((c.capacity as f64 * p.over_provisioning) as u64 / n.erase_block).saturating_sub(self.wear.bad);
                if p.map_cache > 0 && c.capacity / p.map_span.max(1) > 1 << 24 {
                    return Err(("ftl.map_span", "makes more than 2^24 translation pages; take a larger one".into()));
                }
                if p.map_cache > 0 {
                    multiple("ftl.map_span", p.map_span, c.sector, "card.sector")?;
                    if p.map_cache < p.map_span {
                        return Err(("ftl.map_cache", "is smaller than one piece (ftl.map_span)".into()));
                    }
                }
                if spare < p.reserve + 2 {
                    let need = p.reserve + 2;
                    return Err(("ftl.over_provisioning", format!("leaves {spare} spare erase blocks; at least {need} are needed")));
                }
                if (c.capacity / p.unit) as f64 * (1.0 + p.over_provisioning) >= (1u64 << 28) as f64 {
                    return Err((
                        "ftl.unit",
                        "makes more than 2^28 units of flash, the most that page-map simulates; take a larger one".into(),
                    ));
                }
            }
        }
        Ok(())
    }
}
