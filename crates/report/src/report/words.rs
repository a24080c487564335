//! Words for people who never heard of an erase block: two sentences a finding, and the glossary.

use crate::finding::Finding;

/// Statements graded by confidence, so that words and numbers agree.
pub fn grade(c: f64) -> &'static str {
    match c {
        c if c >= 0.95 => "sure",
        c if c >= 0.8 => "likely",
        c if c >= 0.6 => "perhaps",
        _ => "a guess",
    }
}

/// What the quantity is, and what the value found means for whoever uses the card.
pub fn explain(f: &Finding) -> [String; 2] {
    let q = f.quantity;
    let what = q.row().what.to_string();
    let means = match (f.number(), f.at_least) {
        (Some(v), _) => q.means(v).unwrap_or_else(|| format!("On this card it is {}.", q.show(v))),
        (None, Some(b)) => format!("It is {} or more; the measurement ended there.", q.show(b.0)),
        (None, None) => "The data do not support a conclusion.".into(),
    };
    [what, means]
}

/// Terms and what they mean, in the order of the alphabet.
pub const GLOSSARY: &[(&str, &str)] = &[
    ("alignment", "Beginning at a multiple of a size. A partition aligned to the erase block begins where an erase block begins."),
    (
        "allocation unit (AU)",
        "The SD word for the piece of a card that is handled as one; in practice the erase block or several of them. A card may declare one size and use another.",
    ),
    ("cluster", "The unit in which a filesystem hands out space. It is set when formatting, not by the card."),
    (
        "confidence",
        "The probability that an answer is right. Of the answers given at 90 %, about nine in ten are right on simulated cards.",
    ),
    ("drive write", "Writing as many bytes as the whole card holds."),
    ("erase block", "The piece of flash that can only be erased as a whole. To change a part of it the card copies the rest."),
    ("FAT zone", "The beginning of a card where some controllers take scattered writes well, because the file table of FAT lies there."),
    ("flush", "The order to bring everything out of volatile memory onto the flash."),
    ("garbage collection (GC)", "The card's own tidying: it copies what is still valid out of an erase block in order to erase it."),
    (
        "interval",
        "The range that holds the true value: with 95 % probability, as far as chance goes, where times that vary say it; for sure where two places were tried and it lies between.",
    ),
    ("latency", "The time one access takes, from sending it until the card is ready again."),
    (
        "merge",
        "What a card does when one erase block too many is written: it finishes an open one, copying what the writes left out, before it opens another. Its time is the merge cost.",
    ),
    ("multi-plane page", "Pages that the card reads or programs together, often one page on each of two planes."),
    (
        "open AUs",
        "The number of erase blocks that can be written at the same time. The name is flashbench's; what is counted is the erase block as measured, not the AU that a card declares.",
    ),
    (
        "open erase block",
        "An erase block that is being written. A card can hold only a few open; beyond that each new one makes it finish an old one.",
    ),
    ("page", "The unit in which flash is read and programmed, 2 to 16 KiB."),
    (
        "pre, on, post",
        "Three accesses at a boundary: one that ends at it, one that lies across it, one that begins at it. What the middle one takes longer than the others is what crossing the boundary costs.",
    ),
    ("runner-up", "The second most probable answer, with its probability."),
    ("SLC cache", "A part of the flash that is written fast, with one bit a cell, and tidied up later."),
    ("stall", "A single access that takes far longer than the others."),
    (
        "three bits a cell (TLC)",
        "A cell of flash that holds one of eight levels of charge, fewer than 100 electrons apart. It is cheap, slow to write, and wears out sooner than one of one or two bits.",
    ),
    (
        "wear levelling",
        "Every erase wears a block of flash a little. The card spreads the erases; static wear levelling also moves data that never change, so that their blocks take their share, which is a stall now and then.",
    ),
    ("write amplification", "Bytes written to the flash for each byte that the host wrote."),
    ("write unit", "What is programmed as one. A smaller write costs as much."),
];

/// Where to read on: title and address.
pub const READING: &[(&str, &str)] = &[
    ("Arnd Bergmann, \"Optimizing Linux with cheap flash drives\", LWN, 2011", "https://lwn.net/Articles/428584/"),
    ("Flash card survey, Linaro wiki", "https://wiki.linaro.org/WorkingGroups/KernelArchived/Projects/FlashCardSurvey"),
    ("flashbench-results, archive of the mailing list", "https://lists.linaro.org/archives/list/flashbench-results@lists.linaro.org/"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Quantity;

    #[test]
    fn every_finding_is_explained_in_two_sentences() {
        for q in Quantity::ALL {
            for f in [Finding::decided(q, 4096.0, 0.9), Finding::undecided(q, "x"), Finding::at_least(q, 3.0, 0.8, "x")] {
                for sentence in explain(&f) {
                    assert!(sentence.ends_with(['.', '?']) && sentence.len() > 20, "{q}: {sentence}");
                }
            }
        }
    }

    #[test]
    fn the_glossary_is_in_order() {
        let terms: Vec<String> = GLOSSARY.iter().map(|g| g.0.to_lowercase()).collect();
        assert!(terms.is_sorted(), "{terms:?}");
    }
}
