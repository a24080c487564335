//! Cards that lie: what [`crate::random`] draws with one fault each, of every kind that is sold or that cards die of, and the same
//! cards without it. What judges cards must name the first and must not accuse the second.

use crate::model::*;
use crate::random::{self, Draw};
use crate::rng::Rng;
use crate::units::{KIB, MIB};

/// What is wrong with a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    /// Addresses wrap round.
    Wrap,
    /// Writes behind the flash are dropped.
    Limbo,
    /// Accesses behind the flash fail.
    Error,
    /// Addresses wrap round, and each round has flash at its beginning only.
    Chain,
    /// One of these with a cache in front that returns what was written last.
    Cached,
    /// Parts of the card show other parts.
    Shows,
    /// Parts of the card take writes and keep nothing.
    Bad,
    /// Keeps what was there before.
    Old,
    /// Returns zeros.
    Zeros,
    /// Returns data a little further on.
    Shifted,
    /// Returns another place's data.
    Another,
    /// Differs from reading to reading.
    Changing,
    /// Forgets when it is taken out.
    Session,
    /// A small discard damages what lies beside.
    Discard,
}

/// All of them.
pub const LIES: [Lie; 14] = [
    Lie::Wrap,
    Lie::Limbo,
    Lie::Error,
    Lie::Chain,
    Lie::Cached,
    Lie::Shows,
    Lie::Bad,
    Lie::Old,
    Lie::Zeros,
    Lie::Shifted,
    Lie::Another,
    Lie::Changing,
    Lie::Session,
    Lie::Discard,
];

/// A card without a fault; the same seed is the same card on every machine.
pub fn honest(seed: u64) -> Model {
    let mut m = random::card(seed);
    m.name = format!("honest-{seed}");
    m.card.real_capacity = m.card.capacity;
    m.card.beyond = Beyond::Wrap;
    m
}

/// The same card with this fault.
pub fn card(seed: u64, lie: Lie) -> Model {
    let mut d = Draw(Rng::new(seed, 23));
    let mut m = honest(seed);
    m.name = format!("lies-{seed}");
    m.about = format!("drawn at random: {lie:?}");
    let whole = m.card.capacity;
    // One in two to one in 64, a power of two or anything on the grid of sectors.
    let part = if d.chance(70) {
        1 << (63 - (whole >> (1 + d.0.below(6))).leading_zeros())
    } else {
        d.spread(whole / 64, whole / 10 * 9) / m.card.sector * m.card.sector
    };
    match lie {
        Lie::Wrap => (m.card.real_capacity, m.card.beyond) = (part, Beyond::Wrap),
        Lie::Limbo => (m.card.real_capacity, m.card.beyond) = (part, Beyond::Drop),
        Lie::Error => (m.card.real_capacity, m.card.beyond) = (part, Beyond::Error),
        Lie::Chain => chain(&mut d, &mut m),
        Lie::Cached => {
            (m.card.real_capacity, m.card.beyond) = (part, d.of(&[Beyond::Wrap, Beyond::Drop]));
            if d.chance(30) {
                chain(&mut d, &mut m);
            }
            m.card.front = d.spread(4 * KIB, 32 * MIB) / (4 * KIB) * (4 * KIB);
        }
        Lie::Shows | Lie::Bad => areas(&mut d, &mut m, lie),
        Lie::Session => (m.card.keeps, m.card.fails_every) = (Keeps::Session, d.of(&[1, 1, 4])),
        Lie::Discard => m.card.discard_harms = d.spread(4 * KIB, 256 * KIB) / (4 * KIB) * (4 * KIB),
        Lie::Old | Lie::Zeros | Lie::Shifted | Lie::Another | Lie::Changing => {
            m.card.keeps = match lie {
                Lie::Old => Keeps::Old,
                Lie::Zeros => Keeps::Zeros,
                Lie::Shifted => Keeps::Shifted,
                Lie::Another => Keeps::Another,
                _ => Keeps::Changing,
            };
            m.card.fails_every = d.of(&[1, 2, 16, 64, 256]);
        }
    }
    m
}

/// A power of two that is left of the addresses, and less flash than that.
fn chain(d: &mut Draw, m: &mut Model) {
    let whole = 1 << (63 - (m.card.capacity >> d.0.below(4)).leading_zeros());
    m.card.repeats = if whole < m.card.capacity { whole } else { whole / 2 };
    let real = if d.chance(50) { m.card.repeats >> (1 + d.0.below(3)) } else { m.card.repeats / 10 * (2 + d.0.below(8)) };
    m.card.real_capacity = real / m.card.sector * m.card.sector;
    m.card.beyond = d.of(&[Beyond::Drop, Beyond::Drop, Beyond::Error]);
}

/// Several parts, together a third of the card.
fn areas(d: &mut Draw, m: &mut Model, lie: Lie) {
    let n = 2 + d.0.below(3);
    let step = m.card.capacity / n / MIB * MIB;
    for i in 0..n {
        let len = step / 3 / MIB * MIB;
        let at = i * step + d.0.below((step - len) / MIB) * MIB;
        let does = if lie == Lie::Shows { Beyond::Wrap } else { Beyond::Drop };
        // An address line that is stuck there: a power of two away.
        let away = (1 << (63 - (m.card.capacity >> (1 + d.0.below(4))).leading_zeros())).max(len.next_power_of_two());
        let near = if at >= len { at - len } else { at + len };
        let beyond = if at + away + len <= m.card.capacity { at + away } else { near };
        let shows = if at >= away { at - away } else { beyond };
        m.area.push(Area { at, len, does, shows: if does == Beyond::Wrap { shows } else { 0 } });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Card;

    /// All are valid, and what each does to bytes is what its name says.
    #[test]
    fn each_lies_in_its_own_way() {
        for seed in 0..60 {
            let m = honest(seed);
            assert_eq!(Model::parse(&m.to_toml(), &m.name).unwrap(), m);
            for lie in LIES {
                let m = card(seed, lie);
                assert_eq!(Model::parse(&m.to_toml(), &m.name).unwrap_or_else(|e| panic!("{seed} {lie:?}: {e}")), m, "{lie:?}");
                assert_eq!(m, card(seed, lie));
                let mut c = Card::new(&m, seed).with_content();
                // A megabyte of numbered pieces at the far end, somewhere inside, and near the front.
                let whole = m.card.capacity;
                let places = [2 * MIB, whole / 3 / MIB * MIB, whole / 2 / MIB * MIB, whole - 2 * MIB];
                let piece = |at: u64| at.to_le_bytes().repeat(512);
                let mut wrong = false;
                let scattered = (4 * MIB..whole).step_by(whole as usize / 99 / 4096 * 4096);
                let far = (20..40).map(|k| 1 << k).chain([m.card.real_capacity / 4096 * 4096]).map(|d| 2 * MIB + d);
                let pairs = m.area.iter().flat_map(|a| (0..8).map(|i| a.len / 8 / 4096 * 4096 * i).flat_map(|d| [a.at + d, a.shows + d]));
                let near = places.iter().flat_map(|&p| (p..p + MIB).step_by(4096));
                let all: Vec<u64> = near.chain(scattered).chain(far).chain(pairs).filter(|at| at + 4096 <= whole).collect();
                for &at in &all {
                    wrong |= c.submit(0, crate::Request::write(at, 4096)).is_err() || c.store(at, &piece(at)).is_err();
                }
                match lie {
                    Lie::Cached => drop(c.power_cut()),
                    Lie::Session => {
                        let mut back = vec![0; 4096];
                        assert!(c.load(all[0], &mut back).is_ok() && back == piece(all[0]), "kept while it is in");
                        c.power_cut();
                    }
                    Lie::Discard => {
                        c.submit(
                            0,
                            crate::Request { op: crate::Op::Discard, at: 2 * MIB + 512 * KIB, len: 4 * KIB, data: crate::Data::Other },
                        )
                        .unwrap();
                    }
                    _ => {}
                }
                for &at in &all {
                    let mut back = [vec![0; 4096], vec![0; 4096]];
                    wrong |= back.iter_mut().any(|b| c.load(at, b).is_err())
                        || back.iter().any(|b| *b != piece(at)) && (lie != Lie::Discard || at != 2 * MIB + 512 * KIB);
                }
                assert!(wrong, "{seed} {lie:?}: {m:?}");
            }
        }
    }

    /// The cache gives up what came first, and what was taken out of the card is not in it.
    #[test]
    fn a_cache_in_front_hides_missing_flash_until_it_is_displaced() {
        let mut m = honest(3);
        (m.card.real_capacity, m.card.beyond, m.card.front) = (m.card.capacity / 4, Beyond::Drop, MIB);
        let mut c = Card::new(&m, 1).with_content();
        let far = m.card.capacity - 4096;
        let mut back = vec![0; 4096];
        let mut kept_after = |c: &mut Card, bytes: u64| {
            c.store(far, &[7; 4096]).unwrap();
            (0..bytes / 4096).for_each(|i| c.store(i * 4096, &[1; 4096]).unwrap());
            c.load(far, &mut back).unwrap();
            back[0] == 7
        };
        assert!(kept_after(&mut c, 0) && kept_after(&mut c, MIB / 2));
        assert!(!kept_after(&mut c, MIB));
        c.store(far, &[7; 4096]).unwrap();
        c.power_cut();
        c.load(far, &mut back).unwrap();
        assert_eq!(back[0], 0);
    }
}
