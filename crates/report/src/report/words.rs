//! Words for people who never heard of an erase block: two sentences a finding, and the glossary.

use crate::experiment;
use crate::finding::{Finding, Quantity};

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
    let what = what(q).map_or_else(|| asked(f), str::to_string);
    let means = match (f.number(), f.at_least) {
        (Some(v), _) => means(q, v).unwrap_or_else(|| format!("On this card it is {}.", q.show(v))),
        (None, Some(b)) => format!("It is {} or more; the measurement ended there.", q.show(b.0)),
        (None, None) => "The measurement does not carry an answer, so none is given.".into(),
    };
    [what, means]
}

/// A quantity without words of its own: the question that was asked.
fn asked(f: &Finding) -> String {
    let question = f.from.iter().find_map(|n| experiment::by_name(n)).map(|e| e.about().question);
    question.map_or_else(|| format!("This is the {} of the card.", f.quantity.title()), |q| format!("The question was: {q}"))
}

fn what(q: Quantity) -> Option<&'static str> {
    Some(match q.key() {
        "erase_block" => "A card cannot change flash in place: it erases a large piece at once, and this is the size of that piece.",
        "erase_block_offset" => "Erase blocks lie one behind the other like tiles; this is where the first tile of this device begins.",
        "page" => "A page is the smallest piece of flash that the card reads at one go.",
        "access_unit" => "Several pages are read together as one unit; this is the largest such unit below the erase block.",
        "write_unit" => "The card programs flash in units of this size; a smaller write costs as much time as a whole unit.",
        "open_aus_linear" => {
            "A card can have only a few erase blocks in work at once; this many can be written interleaved, each from front to back."
        }
        "open_aus_random" => "The same count when the writes inside each erase block come in any order, as a filesystem makes them.",
        "close_cost_ms" => "When one erase block too many is written, the card must finish another one first; this is what that costs.",
        "fat_zone" => "Some cards treat the first megabytes better, because cameras keep the file table there.",
        "mapping" => {
            "A card notes where its data lie either for whole erase blocks or for every page; that decides which writes it takes well."
        }
        "multi_block_gain" => "A host can send blocks one by one or many in one command; this is what sending them together gains.",
        "multi_block_knee" => "The more goes into one write command, the faster it gets, up to a point; this is that point.",
        "pre_defined_gain" => "A host can say beforehand how much it will write (CMD23); this is what the card makes of it.",
        "pre_erase_gain" => "A host can ask an SD card to erase ahead (ACMD23); this is what the card makes of it.",
        "largest_request" => "The system cuts long requests into pieces; this is the longest piece that reaches the card.",
        "access_time_us" => "Every read costs some time before the first byte comes, however small it is.",
        "read_rate" => "Once a read has begun, further bytes come at this rate.",
        "odd_regions" => "Most of a card answers alike; regions that answer clearly faster or slower are counted here.",
        "content_gain" => "Some cards write empty content (all zeros or all ones) faster than real data.",
        "combines_below" => "Some cards collect small writes that follow each other and program them as one.",
        "efficient_write" => "Small writes waste time; from this size on most of the card's speed is reached.",
        "file_write_rate" => "This is how fast a file grows when a program writes it in small records.",
        "file_read_rate" => "This is how fast a file is read in small records.",
        "rewrite_policy" => {
            "A card without a log rewrites an erase block for a small write: at the end of each transaction, or whenever a small buffer is full."
        }
        "write_buffer" => "Small writes that follow each other wait in the card until this much has come together.",
        "rewrite_ms" => "This is how long the card is busy when it rewrites an erase block for a small write.",
        "rewrite_polls" => {
            "The same, counted in looks of the host at the busy card; it compares cards on one host even where the time of a look is unknown."
        }
        "chip_class" => {
            "The time of a rewrite tells small-block flash (pages of 512 bytes) from large-block flash or flash with several bits a cell."
        }
        "worst_write_ms" => "Now and then a write takes far longer than usual; this is the longest one seen.",
        _ => return None,
    })
}

fn means(q: Quantity, v: f64) -> Option<String> {
    let shown = q.show(v);
    Some(match q.key() {
        "erase_block" => format!("Partitions and large files that begin at multiples of {shown} spare the card needless copying."),
        "erase_block_offset" if v == 0.0 => "The tiles begin with the device, so plain multiples of the erase block are right.".into(),
        "erase_block_offset" => format!("Everything aligned must begin {shown} later than plain multiples of the erase block."),
        "mapping" if v == 1.0 => "Only a few erase blocks can be in work at once, so scattered small writes are costly.".into(),
        "mapping" if v == 2.0 => "Small writes may be scattered at will, until the card must tidy up in long pauses.".into(),
        "mapping" => "Every small write costs the rewriting of a whole erase block.".into(),
        "page" => format!("Data that cross a multiple of {shown} need two reads instead of one."),
        "access_unit" => format!("Reads that stay inside a multiple of {shown} are the cheapest."),
        "write_unit" => format!("A program that writes less than {shown} at a time pays for {shown} each time."),
        "open_aus_linear" | "open_aus_random" if v == 0.0 => {
            "Every write makes the card finish an erase block: all writes are slow.".into()
        }
        "open_aus_linear" => format!("Up to {shown} files can grow at the same time; one more makes every write slow."),
        "open_aus_random" => format!("A filesystem that keeps its random writes inside {shown} erase blocks at a time stays fast."),
        "close_cost_ms" => format!("Each switch to an erase block beyond the limit holds the writer up for {shown}."),
        "fat_zone" if v == 0.0 => "This card has no such zone, so it does not matter where the file table lies.".into(),
        "fat_zone" => format!("Keep a FAT, or whatever else is rewritten often, in the first {shown}."),
        "multi_block_gain" => format!("Programs that write in large pieces are {shown} as fast as those that write single blocks."),
        "multi_block_knee" => format!("Writing {shown} or more at a time reaches nine tenths of the best rate."),
        "largest_request" => format!("Asking for more than {shown} at once gains nothing here."),
        "access_time_us" => format!("A thousand small reads cost a thousand times {shown}, whatever their size."),
        "efficient_write" => format!("Collect data until there are {shown} before writing them."),
        "worst_write_ms" => format!("A program that must not lose data needs room for what arrives in {shown}."),
        "combines_below" if v > 0.0 => format!("Writes below {shown} that follow each other cost less than their number suggests."),
        _ => return None,
    })
}

/// Terms and what they mean, in the order of the alphabet.
pub const GLOSSARY: &[(&str, &str)] = &[
    ("access unit", "Pages that the card reads or programs together, often one page on each of two planes."),
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
    ("Flash card survey, Linaro wiki", "https://wiki.linaro.org/WorkingGroups/KernelConsolidation/Projects/FlashCardSurvey"),
    ("flashbench-results, archive of the mailing list", "https://lists.linaro.org/archives/list/flashbench-results@lists.linaro.org/"),
];

#[cfg(test)]
mod tests {
    use super::*;

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
