//! What stands between program and card: commands, cuts, joining readers, and the noise of real hosts.

use crate::chance::Chance;

/// A host or reader.
pub struct Host {
    /// Its name.
    pub name: &'static str,
    /// Time of one command, in ns.
    pub command: f64,
    /// Time of one byte on the wire, in ns.
    pub byte: f64,
    /// Longest command in bytes; longer requests are cut.
    pub cut: u64,
    /// Bytes a reader joins before it passes them on; 0 = none.
    pub join: u64,
    /// Relative deviation of a request's time.
    pub core: f64,
    /// Share of requests that are late.
    pub late: f64,
    /// Mean lateness in ns.
    pub late_by: f64,
    /// Answers come at multiples of this many ns (USB microframes); 0 = none.
    pub tick: f64,
    /// Every so many ns the host is away; 0 = never.
    pub away_every: f64,
    /// For so long, in ns.
    pub away_for: f64,
    next_away: f64,
}

impl Host {
    /// Draws a host.
    ///
    /// Figures: repeated `flashbench -a` in a slot scatter by 0.5 to 2 %; behind a USB reader by 3 % with commands of 250 to 300 us and steps of
    /// one microframe (125 us); one published reader by 30 to 100 %; single blocks over SPI take 0.7 to 1.5 ms with calls of 20 ms now and then;
    /// fio behind a PCIe reader has 5 % of 1 MiB writes 2.4 times as long.
    pub fn draw(c: &mut Chance) -> Self {
        let odd_cut = 4096 * (3 + c.below(120));
        let cut = c.of(&[u64::MAX, u64::MAX, 64 << 10, 120 << 10, 128 << 10, 240 << 10, 256 << 10, 508 << 10, 512 << 10, 1 << 20, odd_cut]);
        let mut host = match c.below(10) {
            0..=4 => Self::native(c),
            5..=7 => Self::usb(c),
            8 => Self::spi(c),
            _ => Self::pcie(c),
        };
        host.cut = cut;
        if c.with(0.12) {
            host.join = c.of(&[16 << 10, 32 << 10, 64 << 10]);
        }
        if c.with(0.3) {
            host.away_every = c.span(5e7, 4e9);
            host.away_for = c.span(2e5, 6e6);
        }
        host
    }

    fn plain(name: &'static str, command: f64, rate_mb: f64, core: f64, late: f64, late_by: f64) -> Self {
        Host {
            name,
            command,
            byte: 1000.0 / rate_mb,
            cut: u64::MAX,
            join: 0,
            core,
            late,
            late_by,
            tick: 0.0,
            away_every: 0.0,
            away_for: 0.0,
            next_away: 0.0,
        }
    }

    /// A host without noise or cuts.
    pub fn quiet() -> Self {
        Self::plain("quiet", 100_000.0, 45.0, 0.0, 0.0, 0.0)
    }

    /// The same host, which hears of what is done at the next microframe of USB.
    pub fn at_frames(self) -> Self {
        Host { tick: 125_000.0, ..self }
    }

    /// The same host, every request of which takes what it has to.
    pub fn even(self) -> Self {
        Host { core: 0.0, late: 0.0, away_every: 0.0, ..self }
    }

    fn native(c: &mut Chance) -> Self {
        Self::plain(
            "native",
            c.span(6e4, 2.5e5),
            c.of(&[12.5, 22.0, 45.0, 90.0]),
            c.span(0.004, 0.02),
            c.span(0.001, 0.02),
            c.span(1e5, 2e6),
        )
    }

    fn usb(c: &mut Chance) -> Self {
        let mut h = Self::plain("usb", c.span(2e5, 4e5), c.span(18.0, 38.0), c.span(0.01, 0.04), c.span(0.005, 0.05), c.span(1e5, 1e6));
        if c.with(0.5) {
            h.tick = 125_000.0;
        }
        h
    }

    fn spi(c: &mut Chance) -> Self {
        Self::plain("spi", c.span(1e5, 7e5), c.span(0.8, 3.5), c.span(0.001, 0.01), c.span(0.0005, 0.005), c.span(1e5, 1e6))
    }

    fn pcie(c: &mut Chance) -> Self {
        Self::plain("pcie", c.span(8e4, 2e5), 85.0, c.span(0.01, 0.03), 0.05, c.span(2e6, 2e7))
    }

    /// What a request takes as the host sees it, in ns, from what it takes at the card.
    pub fn seen(&mut self, start: f64, took: f64, c: &mut Chance) -> f64 {
        let mut t = took * (1.0 + self.core * c.normal()).max(0.5);
        if self.late > 0.0 && c.with(self.late) {
            t += c.wait(self.late_by);
        }
        if self.away_every > 0.0 {
            while self.next_away < start {
                self.next_away += c.wait(self.away_every);
            }
            if self.next_away < start + t {
                t += self.away_for;
            }
        }
        if self.tick > 0.0 {
            t = ((start + t) / self.tick).ceil() * self.tick - start;
        }
        t.max(1000.0)
    }
}
