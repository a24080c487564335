//! What a survey of cards written to death has found: the prior of every estimate of a life.
//!
//! Figures of the Great microSD Card Survey of Matt Cole (bahjeez.com), as dated there: August and September 2025. A cycle is one full
//! write and one full read of the card. A card that dies before a threshold is entered with its last cycle, so "0.1 % bad" is about the
//! end of a useful life. Cards that are still well are left out by the source, so true lives are longer rather than shorter.

use nandscope_stats::{normal, normal_inverse};

/// What happens to a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first wrong or unreadable sector.
    FirstError,
    /// 0.1 % of the sectors are bad, or the card died before.
    SomeBad,
    /// It does not work any more, or half of its sectors are bad.
    Death,
}

/// All cards of an event.
pub struct All {
    pub event: Event,
    pub cards: usize,
    pub mean: f64,
    pub median: f64,
}

/// As printed by the source.
pub const ALL: [All; 3] = [
    All { event: Event::FirstError, cards: 196, mean: 2562.0, median: 1502.0 },
    All { event: Event::SomeBad, cards: 125, mean: 5097.0, median: 3161.0 },
    All { event: Event::Death, cards: 119, mean: 5362.0, median: 3616.0 },
];

/// Cards of one brand: cycles, and how many cards stand at that place.
pub struct Brand {
    pub event: Event,
    pub name: &'static str,
    pub cards: &'static [(f64, u32)],
}

/// Brands of which the source gives single figures. Least and most are cards; where mean or median fix the others, these stand there
/// (three cards: the third is what the mean leaves); the rest stand at the brand's median, or at the mean of what is left.
pub const BRANDS: [Brand; 8] = [
    Brand { event: Event::FirstError, name: "Kingston", cards: &[(5.0, 1), (2865.0, 8), (8800.0, 1)] },
    Brand { event: Event::FirstError, name: "Lenovo", cards: &[(246.0, 1), (307.0, 1), (320.0, 1)] },
    Brand { event: Event::FirstError, name: "Samsung", cards: &[(0.0, 1), (4342.5, 4), (17514.0, 1)] },
    Brand { event: Event::FirstError, name: "XrayDisk", cards: &[(2.0, 1), (12.0, 1), (67.0, 1)] },
    Brand { event: Event::SomeBad, name: "Hiksemi", cards: &[(5165.0, 1), (7682.0, 2), (8685.0, 1), (19851.0, 1)] },
    Brand { event: Event::SomeBad, name: "Lexar", cards: &[(9511.0, 1)] },
    Brand { event: Event::SomeBad, name: "QWQ", cards: &[(274.0, 1), (1278.0, 1), (1916.0, 1)] },
    Brand { event: Event::SomeBad, name: "Silicon Power", cards: &[(921.0, 1), (1799.0, 4), (3882.0, 1)] },
];

/// Dead cards, and how many of them had so many sectors bad while they still worked.
pub const DEAD: u32 = 119;
/// Share of bad sectors in percent, and cards that reached it while they worked.
pub const ANNOUNCED: [(u32, u32); 4] = [(1, 55), (10, 48), (25, 41), (50, 35)];

/// Standard deviations from the middle to a tenth.
const TENTH: f64 = 1.281_551_6;

/// Cycles as a distribution: lognormal on both sides of the median, with a spread for each side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    /// Standard deviation of the logarithm below the median, and above.
    pub sigma: [f64; 2],
}

impl Spread {
    /// The share of cards that have met the event after so many cycles.
    pub fn share(&self, cycles: f64) -> f64 {
        if cycles <= 0.0 {
            return 0.0;
        }
        let side = self.sigma[usize::from(cycles > self.median)];
        normal((cycles / self.median).ln() / side)
    }

    /// Cycles after which a share of the cards has met the event.
    pub fn quantile(&self, share: f64) -> f64 {
        self.median * (self.sigma[usize::from(share > 0.5)] * normal_inverse(share)).exp()
    }

    /// Cycles left of a card that has done so many: the same share of the cards that got so far.
    pub fn left(&self, done: f64, share: f64) -> f64 {
        let gone = self.share(done);
        (self.quantile((gone + share * (1.0 - gone)).clamp(1e-9, 1.0 - 1e-9)) - done).max(0.0)
    }

    /// Another kind of flash: all cycles longer or shorter by a factor.
    pub fn times(self, factor: f64) -> Spread {
        Spread { median: self.median * factor, ..self }
    }
}

/// Distribution of an event, without the cards of one brand where one is named.
///
/// The middle is the median of all cards. Each tenth is the wider of two: that of a lognormal with the mean and median of all cards,
/// and that of the cards of single brands; for want of brands the death of cards has the brands of "0.1 % bad", relative to its median.
pub fn spread(event: Event, without: Option<&str>) -> Spread {
    let of = |e: Event| ALL.iter().find(|a| a.event == e).unwrap_or(&ALL[2]);
    let all = of(event);
    let from = if event == Event::Death { Event::SomeBad } else { event };
    let mut cards: Vec<(f64, f64)> = BRANDS
        .iter()
        .filter(|b| b.event == from && Some(b.name) != without)
        .flat_map(|b| b.cards.iter().map(|&(c, n)| ((c.max(0.5) / of(from).median).ln(), f64::from(n))))
        .collect();
    nandscope_stats::ascending(&mut cards, |a| a.0);
    // A lognormal with this mean and median.
    let sigma = (2.0 * (all.mean / all.median).ln()).sqrt();
    let low = (-place(&cards, 0.1) / TENTH).max(sigma);
    let high = (place(&cards, 0.9) / TENTH).max(sigma);
    Spread { median: all.median, sigma: [low, high] }
}

/// Weighted quantile: cards stand in the middle of their share.
fn place(cards: &[(f64, f64)], share: f64) -> f64 {
    let whole: f64 = cards.iter().map(|c| c.1).sum();
    let mut before = 0.0;
    let mut last: Option<(f64, f64)> = None;
    for &(x, n) in cards {
        let at = (before + n / 2.0) / whole;
        before += n;
        if share <= at {
            return last.map_or(x, |(a, y)| y + (x - y) * (share - a) / (at - a));
        }
        last = Some((at, x));
    }
    last.map_or(0.0, |l| l.1)
}

/// Cycles a kind of flash is rated for, against the three-bit cells that most cards of the survey have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flash {
    Slc,
    Pslc,
    Mlc,
    Tlc,
    Qlc,
}

impl Flash {
    pub const ALL: [(Flash, &'static str, [f64; 2]); 5] = [
        (Flash::Slc, "SLC", [50_000.0, 100_000.0]),
        (Flash::Pslc, "pSLC", [20_000.0, 40_000.0]),
        (Flash::Mlc, "MLC", [3_000.0, 10_000.0]),
        (Flash::Tlc, "TLC", [1_000.0, 3_000.0]),
        (Flash::Qlc, "QLC", [100.0, 1_000.0]),
    ];

    /// Name, and cycles that makers state (Lexar Enterprise and Delkin, as lexarenterprise.com and kalstor.com print them).
    pub fn figures(self) -> (&'static str, [f64; 2]) {
        Flash::ALL.iter().find(|f| f.0 == self).map_or(("TLC", [1_000.0, 3_000.0]), |f| (f.1, f.2))
    }

    /// How many times the cycles of three-bit cells: middle to middle of what makers state.
    pub fn factor(self) -> f64 {
        let middle = |[a, b]: [f64; 2]| ((a.ln() + b.ln()) / 2.0).exp();
        middle(self.figures().1) / middle(Flash::Tlc.figures().1)
    }
}

/// Cycles in the middle of what makers state of three-bit cells.
pub fn usual_rating() -> f64 {
    let [a, b] = Flash::Tlc.figures().1;
    (a * b).sqrt()
}
