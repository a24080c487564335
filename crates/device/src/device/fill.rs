//! What a write puts on the medium, made from its name and the position alone, so that it can be made again and compared.

use super::Fill;
use crate::units::SECTOR;

/// First eight bytes of a stamped sector.
const STAMP: [u8; 8] = *b"nandscpS";

impl Fill {
    /// True where the bytes do not depend on the position, so that one prepared buffer serves every write.
    pub fn is_constant(self) -> bool {
        matches!(self, Fill::Zeros | Fill::Ones | Fill::Byte(_))
    }

    /// The bytes this fill puts at `at` (bytes from the start of the target, a multiple of 512) for the length of `out`.
    pub fn render(self, at: u64, out: &mut [u8]) {
        match self {
            Fill::Zeros => out.fill(0),
            Fill::Ones => out.fill(0xff),
            Fill::Byte(b) => out.fill(b),
            Fill::Random(seed) => {
                for (i, sector) in out.chunks_mut(SECTOR as usize).enumerate() {
                    noise(seed, at / SECTOR + i as u64, sector);
                }
            }
            Fill::Stamp(seed) => {
                for (i, sector) in out.chunks_mut(SECTOR as usize).enumerate() {
                    let number = at / SECTOR + i as u64;
                    noise(seed, number, sector);
                    let head = [STAMP, (number * SECTOR).to_le_bytes(), seed.to_le_bytes()].concat();
                    let n = head.len().min(sector.len());
                    sector[..n].copy_from_slice(&head[..n]);
                }
            }
        }
    }
}

/// The address and seed a stamped sector carries; none where the sector has no stamp.
pub fn read_stamp(sector: &[u8]) -> Option<(u64, u64)> {
    let word = |i: usize| Some(u64::from_le_bytes(sector.get(8 * i..8 * i + 8)?.try_into().ok()?));
    (sector.get(..8)? == STAMP).then_some(())?;
    Some((word(1)?, word(2)?))
}

/// Incompressible bytes: SplitMix64 (Steele, Lea and Flood, 2014) in counter mode, keyed by seed and sector number.
fn noise(seed: u64, sector: u64, out: &mut [u8]) {
    let key = mix(seed ^ mix(sector.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    for (i, word) in out.chunks_mut(8).enumerate() {
        let w = mix(key.wrapping_add((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))).to_le_bytes();
        word.copy_from_slice(&w[..word.len()]);
    }
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_depends_on_the_position_only() {
        for fill in [Fill::Zeros, Fill::Ones, Fill::Byte(0x5a), Fill::Random(3), Fill::Stamp(3)] {
            let mut whole = vec![1; 8192];
            fill.render(1 << 20, &mut whole);
            let mut part = vec![2; 1024];
            fill.render((1 << 20) + 2048, &mut part);
            assert_eq!(part, &whole[2048..3072], "{fill:?}");
        }
    }

    #[test]
    fn random_is_balanced_and_differs_by_seed_and_sector() {
        let mut a = vec![0; 65536];
        Fill::Random(1).render(0, &mut a);
        let ones: u32 = a.iter().map(|b| b.count_ones()).sum();
        // Half of 524288 bits, six standard deviations of 362 either side.
        assert!((262_144 - 2172..262_144 + 2172).contains(&ones), "{ones}");
        let mut b = vec![0; 512];
        Fill::Random(2).render(0, &mut b);
        assert_ne!(&a[..512], &b[..]);
        assert_ne!(a[..512], a[512..1024]);
    }

    #[test]
    fn stamps_say_where_they_belong() {
        let mut a = vec![0; 1024];
        Fill::Stamp(9).render(4096, &mut a);
        assert_eq!(read_stamp(&a[512..]), Some((4608, 9)));
        assert_eq!(read_stamp(&[0; 512]), None);
        assert_eq!(read_stamp(b"nandscpS123"), None);
    }
}
