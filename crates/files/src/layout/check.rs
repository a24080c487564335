//! A guess about where partitions should start, held against what was measured (U12: distributions guess 4 MiB, 8 MiB).

use super::grid::{self, SURE, probability_on, safe_unit};
use crate::finding::{Findings, Quantity, percent};
use crate::units::Bytes;
use serde::Serialize;

/// What a report says of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is a boundary of the erase block.
    Right,
    /// It is none.
    Wrong,
    /// The report does not carry an answer.
    Undecided,
}

/// A guess and its judgement.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub start: u64,
    pub answer: Answer,
    /// Probability that the start is a boundary, by all the sizes the report allows; none where it names no size.
    pub probability: Option<f64>,
    /// In words, one sentence each.
    pub because: Vec<String>,
}

/// Holds a start in bytes from the beginning of the disk against the findings.
pub fn check(start: u64, findings: &Findings) -> Check {
    let undecided = |why: String| Check { start, answer: Answer::Undecided, probability: None, because: vec![why] };
    let Some(block) = findings.get(Quantity::EraseBlock) else { return undecided("the report says nothing of the erase block".into()) };
    let Some(size) = block.number().filter(|v| *v >= 1.0) else {
        return undecided(grid::undecided(block));
    };
    let first = findings.value(Quantity::EraseBlockOffset, 0.5).unwrap_or(0.0) as u64;
    let probability = probability_on(block, first, start);
    let mut because = vec![format!("the erase block is {} ({:.0} %)", Bytes(size as u64), percent(block.confidence))];
    if first > 0 {
        because.push(format!("the first one begins at {}", Bytes(first)));
    }
    let answer = match probability {
        p if p >= SURE => Answer::Right,
        // The share the finding leaves unnamed may be anything.
        _ if block.confidence >= SURE && !start.abs_diff(first).is_multiple_of(size as u64) => Answer::Wrong,
        _ => Answer::Undecided,
    };
    because.push(match answer {
        Answer::Right => format!("{} is a boundary of it", Bytes(start)),
        Answer::Wrong => {
            let next = first + start.saturating_sub(first).next_multiple_of(size as u64);
            format!("{} is no boundary of it; the next one is at {}", Bytes(start), Bytes(next))
        }
        Answer::Undecided => match safe_unit(block) {
            Some(u) => format!("that is not sure enough; multiples of {} are right under every size the report allows", Bytes(u)),
            None => "that is not sure enough, and the sizes the report allows have no common multiple below 64 MiB".into(),
        },
    });
    Check { start, answer, probability: Some(probability), because }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::units::MIB;

    fn about(value: u64, confidence: f64, rival: Option<(u64, f64)>) -> Findings {
        let f = Finding::decided(Quantity::EraseBlock, (value * MIB) as f64, confidence);
        Findings(vec![f.rivals(rival.map(|(v, p)| ((v * MIB) as f64, p)))])
    }

    #[test]
    fn guesses_of_distributions() {
        let four = about(4, 0.97, Some((2, 0.02)));
        for (start, want) in [(4, Answer::Right), (8, Answer::Right), (1, Answer::Wrong), (6, Answer::Wrong)] {
            assert_eq!(check(start * MIB, &four).answer, want, "{start} MiB");
        }
        // A rival that the start also fits counts for it; one it does not fit counts against it.
        let doubtful = about(4, 0.6, Some((8, 0.35)));
        assert_eq!(check(8 * MIB, &doubtful).answer, Answer::Right);
        let undecided = check(4 * MIB, &doubtful);
        assert_eq!(undecided.answer, Answer::Undecided);
        assert!(undecided.probability.is_some_and(|p| (p - 0.6).abs() < 0.02), "what speaks for it is known: {:?}", undecided.probability);
        assert!(check(4 * MIB, &doubtful).because[1].contains("multiples of 8 MiB"));
        assert_eq!(check(4 * MIB, &about(12, 0.9, None)).answer, Answer::Wrong);
        assert!(check(4 * MIB, &about(12, 0.9, None)).because[1].contains("12 MiB"));
    }

    #[test]
    fn no_answer_without_a_size() {
        for f in [Findings::default(), Findings(vec![Finding::undecided(Quantity::EraseBlock, "noise")])] {
            let c = check(MIB, &f);
            assert_eq!((c.answer, c.probability), (Answer::Undecided, None));
            assert!(serde_json::to_value(&c).unwrap()["probability"].is_null());
        }
    }

    #[test]
    fn the_first_block_counts() {
        let mut f = about(4, 0.97, None);
        f.0.push(Finding::decided(Quantity::EraseBlockOffset, (2 * MIB) as f64, 0.9));
        assert_eq!(check(6 * MIB, &f).answer, Answer::Right);
        assert_eq!(check(8 * MIB, &f).answer, Answer::Wrong);
    }
}
