//! Cards as they are sold today, drawn at random: mapped by page, most with an SLC cache that folds or is passed by when full, a map
//! larger than the memory, collection in the foreground or at rest, some with a queue. What [`crate::random`] draws for geometry and
//! times is kept.

use crate::model::*;
use crate::random::{self, Draw};
use crate::rng::Rng;
use crate::units::{GIB, KIB, MIB};

const US: u64 = 1000;
const MS: u64 = 1_000_000;

/// A card of today; the same seed is the same card on every machine.
pub fn card(seed: u64) -> Model {
    let mut d = Draw(Rng::new(seed, 11));
    loop {
        let mut m = random::card(d.0.next());
        m.name = format!("today-{seed}");
        m.about = "drawn at random, a card of today".to_string();
        page_map(&mut d, &mut m);
        slc(&mut d, &mut m);
        if d.chance(40) {
            m.card.queue = d.of(&[8, 32]);
            m.nand.dies = d.of(&[2, 4, 8]);
        }
        // On a full card it is as large as was drawn; the less is written, the larger.
        if m.slc.size > 0 && d.chance(30) {
            (m.slc.dynamic, m.slc.least) = (true, m.slc.size);
            m.slc.size = (m.slc.size * (2 + d.0.below(4))).min(m.card.capacity / 6 / MIB * MIB).max(m.slc.size);
        }
        // The sizes that were drawn may contradict each other; then another one is drawn.
        if let Ok(model) = Model::parse(&m.to_toml(), &m.name) {
            return model;
        }
    }
}

fn page_map(d: &mut Draw, m: &mut Model) {
    m.ftl = Ftl { kind: FtlKind::PageMap, ..Model::blank().ftl };
    m.nand.lookup = 0;
    m.nand.erase_block_offset = 0;
    (m.nand.unwritten, m.card.state) = (Unwritten::default(), State::Written);
    m.card.beyond = Beyond::default();
    m.card.cache = 0;
    m.card.shortcut = Shortcut::None;
    m.card.sector = 512;
    m.wear = Wear::default();
    let p = &mut m.ftl.page;
    p.unit = m.nand.write_unit;
    p.over_provisioning = d.of(&[0.07, 0.07, 0.15, 0.28]);
    p.when = d.of(&[GcWhen::Foreground, GcWhen::Background, GcWhen::Preemptible]);
    p.idle = d.spread(MS, 500 * MS);
    p.goal = 4 + d.0.below(28);
    // A map of at most a million entries keeps hundreds of cards quick.
    m.card.capacity = d.spread(4 * GIB, 64 * GIB).min(p.unit << 20).max(96 * m.nand.erase_block).div_ceil(MIB) * MIB;
    m.card.real_capacity = m.card.capacity;
    if d.chance(75) {
        p.map_span = d.of(&[512 * KIB, MIB, 2 * MIB, 4 * MIB]);
        p.map_cache = p.map_span * d.spread(4, 512);
        p.map_miss = d.spread(40 * US, 400 * US);
    }
}

fn slc(d: &mut Draw, m: &mut Model) {
    m.slc = Slc::default();
    // Cells of several bits take three to eight times as long to program as those of one.
    if d.chance(80) {
        m.slc = Slc {
            size: d.spread(16 * MIB, 2 * GIB).min(m.card.capacity / 8) / MIB * MIB,
            dynamic: false,
            least: 0,
            program: m.nand.program / (3 + d.0.below(4)),
            fold: m.nand.program / 8,
            full: d.of(&[SlcFull::Fold, SlcFull::Direct]),
            background: true,
            idle: d.spread(20 * MS, 1000 * MS),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_of_today_maps_by_page_and_has_its_seed() {
        let all: Vec<Model> = (0..300).map(card).collect();
        assert!(all.iter().all(|m| m.ftl.kind == FtlKind::PageMap));
        let share = |f: fn(&Model) -> bool| all.iter().filter(|m| f(m)).count();
        for (what, n) in [
            ("slc", share(|m| m.slc.size > 0)),
            ("map", share(|m| m.ftl.page.map_cache > 0)),
            ("queue", share(|m| m.card.queue > 1)),
            ("dynamic", share(|m| m.slc.dynamic && m.slc.least < m.slc.size)),
            ("direct", share(|m| m.slc.size > 0 && m.slc.full == SlcFull::Direct)),
        ] {
            assert!((40..300).contains(&n), "{what}: {n}");
        }
        assert_eq!(card(7), all[7]);
    }
}
