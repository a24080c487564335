//! Stretches of bits, a word at a time: an erase block of 48 MiB has 12288 units of 4 KiB.

use std::ops::Range;

/// The words that hold the bits of `range`, each with a mask of these.
#[inline]
pub(super) fn words(range: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let (word, low) = (at as usize / 64, at % 64);
        let n = (64 - low).min(range.end.checked_sub(at)?);
        at += n;
        (n > 0).then(|| (word, (u64::MAX >> (64 - n)) << low))
    })
}

pub(super) fn any(of: &[u64], range: Range<u64>) -> bool {
    words(range).any(|(i, mask)| of[i] & mask != 0)
}

pub(super) fn ones(of: &[u64], range: Range<u64>) -> u64 {
    words(range).map(|(i, mask)| u64::from((of[i] & mask).count_ones())).sum()
}

/// Sets the bits of `range` and says how many were clear.
#[inline]
pub(super) fn set(bits: &mut [u64], range: Range<u32>) -> u32 {
    let one = |(i, mask): (usize, u64)| {
        let fresh = (mask & !bits[i]).count_ones();
        bits[i] |= mask;
        fresh
    };
    words(range.start.into()..range.end.into()).map(one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_word_by_word_as_one_by_one() {
        let of: Vec<u64> = (1..6u64).map(|k| k.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let bit = |k: u64| of[(k / 64) as usize] >> (k % 64) & 1;
        for from in [0, 1, 63, 64, 65, 130] {
            for to in [from, from + 1, from + 63, from + 64, from + 65, 320] {
                let one_by_one: u64 = (from..to).map(bit).sum();
                assert_eq!(ones(&of, from..to), one_by_one, "{from}..{to}");
                assert_eq!(any(&of, from..to), one_by_one > 0, "{from}..{to}");
            }
        }
    }
}
