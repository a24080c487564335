//! The words a model file may use.

use crate::form::Choice;

macro_rules! words {
    ($(#[$m:meta])* $name:ident { $($(#[$d:meta])* $v:ident = $w:literal),+ $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        #[allow(missing_docs)]
        pub enum $name { #[default] $($(#[$d])* $v),+ }
        impl Choice for $name {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$v, $w)),+];
        }
    };
}

words!(
    /// What the card held before the first request.
    State { Written = "written", Empty = "empty" }
);
words!(
    /// What a read of never written flash costs.
    Unwritten { AsWritten = "as-written", Flat = "flat" }
);
words!(
    /// What happens behind the real capacity of a counterfeit card.
    Beyond { Wrap = "wrap", Drop = "drop", Error = "error" }
);
words!(
    /// What a card keeps of what is written to it, where it fails without saying so.
    Keeps {
        All = "all",
        /// Acknowledges a write and keeps what was there before.
        Old = "old",
        /// Reads as zeros whatever was written.
        Zeros = "zeros",
        /// Reads as the data two sectors further on.
        Shifted = "shifted",
        /// Reads differently each time.
        Changing = "changing",
        /// Reads as the data of another piece.
        Another = "another",
        /// Keeps what is written until it is taken out.
        Session = "session",
    }
);
words!(
    /// How the card finds its data.
    FtlKind { None = "none", BlockMap = "block-map", LogBlock = "log-block", WriteThrough = "write-through", PageMap = "page-map" }
);
words!(
    /// Which open AU is closed when another one is needed.
    Evict { Lru = "lru", Fifo = "fifo", Random = "random", Counter = "counter" }
);
words!(
    /// How pages lie in a log block.
    LogOrder { PageMapped = "page-mapped", InOrder = "in-order" }
);
words!(
    /// What closing an AU written in random order copies.
    MergeRandom { Rest = "rest", Whole = "whole" }
);
words!(
    /// What of an erase block a merge copies.
    Copies {
        /// All that the log lacks, whether anything was ever written there.
        All = "all",
        /// What the log lacks and the erase block holds: nothing on a card that was never written, which has nothing to erase either.
        Held = "held",
        /// The same, where the card knows of whole erase blocks only whether they hold anything.
        Blocks = "blocks",
    }
);
words!(
    /// What a discarded place reads as.
    Discarded { Zeros = "zeros", Old = "old" }
);
words!(
    /// Which operation a rule looks at.
    On { Write = "write", Read = "read", Any = "any" }
);
words!(
    /// How the host sends a request that is longer than one sector.
    Transfer { Predefined = "pre-defined", OpenEnded = "open-ended", Single = "single-block" }
);
words!(
    /// A machine whose figures `[host]` starts from.
    Profile {
        None = "none",
        /// Arduino Uno: ATmega328 at 16 MHz, SPI at 8 MHz, SdFat with one sector of buffer.
        Avr16 = "avr-16mhz-spi",
        /// ATmega64 at 9.2 MHz, SPI at 4.6 MHz, FatFs.
        Atmega64 = "atmega64-9mhz-spi",
        /// Raspberry Pi Pico: RP2040 at 125 MHz, SPI at 31.25 MHz, FatFs.
        Rp2040 = "rp2040-spi",
        /// ESP32 at 240 MHz, SPI at 30 MHz, SdFat with the bus to itself.
        Esp32 = "esp32-spi",
        /// Raspberry Pi: four data lines at 50 MHz, Linux.
        PiSdio = "pi-sdio",
        /// A laptop with a USB 3 reader.
        Laptop = "laptop-reader",
    }
);
words!(
    /// Data the card does not have to program.
    Shortcut { None = "none", Zeros = "zeros", Ones = "ones", Both = "both" }
);
words!(
    /// Which block garbage collection empties.
    Gc { Greedy = "greedy", Fifo = "fifo", CostBenefit = "cost-benefit", DChoice = "d-choice" }
);
words!(
    /// When garbage is collected.
    GcWhen { Foreground = "foreground", Background = "background", Preemptible = "preemptible" }
);
words!(
    /// What happens to a write when the SLC cache is full.
    SlcFull { Fold = "fold", Direct = "direct" }
);
words!(
    /// What goes wrong.
    FaultKind { Io = "io", Gone = "gone", ReadOnly = "read-only", PowerCut = "power-cut" }
);
