//! Host profiles (C6): the machine is part of every measurement. Each figure is documented, derived or fitted, and says which.

use super::{Host, Profile, Transfer};
use crate::form::Choice;
use crate::units::KIB;

const US: u64 = 1_000;

impl Host {
    /// The machine of a profile.
    pub fn of(profile: Profile) -> Host {
        let mut h = Host::default();
        profile.put(&mut h);
        h
    }

    /// The profile this machine is, where it is one unchanged.
    pub fn profile(&self) -> Option<Profile> {
        let same = |p: &Profile| {
            let mut h = Host::of(*p);
            h.tail_cap = self.tail_cap;
            h == *self
        };
        Profile::ALL.iter().map(|(p, _)| *p).filter(|p| *p != Profile::None).find(same)
    }
}

impl Profile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::ALL.iter().find(|(_, w)| *w == name).map(|(p, _)| *p)
    }

    /// The name, as in a model file.
    pub fn name(self) -> &'static str {
        self.word()
    }

    /// All names but `none`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Profile::ALL.iter().skip(1).map(|(_, w)| *w)
    }

    /// Puts the figures of this machine where a model file may then change them.
    pub(super) fn put(self, h: &mut Host) {
        match self {
            Profile::None => {}
            Profile::Avr16 => {
                // G5: a record of 100 B that stays in the buffer takes 80 (read) and 84 us (write). Eight cycles a byte copied
                // is what a plain loop takes on an AVR; the rest is the call.
                (h.call, h.copy) = (32 * US, 2_000_000);
                // G7: record / throughput less the average is 5.2 to 7.1 us in all consistent rows.
                h.pause = 6 * US;
                // A byte takes 8 cycles on the bus at 8 MHz, and the loop around it: 24 cycles. Fitted: what the fastest card's
                // shortest read (1032 us) leaves for a card that is no slower than SLC flash.
                h.rate = 667_000;
                // Six bytes, the wait for an answer, chip select; fitted with the rate.
                (h.command, h.status) = (60 * US, 50 * US);
                h.poll = 1_500;
                (h.transfer, h.buffer) = (Transfer::Single, 512);
            }
            Profile::Atmega64 => {
                // C8, C21: 328 kB/s is read from the fastest card, and 3800 and 30000 polls explain the two SDCs at 4.3 to 5.4 us.
                (h.call, h.copy, h.pause) = (60 * US, 1_000_000, 10 * US);
                // 4.6 MHz, 16 cycles and a loop of 9 cycles a byte (derived).
                (h.rate, h.command) = (368_000, 120 * US);
                h.poll = 4_900;
                (h.transfer, h.buffer, h.fat_buffer) = (Transfer::OpenEnded, 512, true);
            }
            Profile::Rp2040 => {
                // Published logs of pico_fatfs at 31.25 MHz: the shortest read of 512 B is 407 us, of which the wire is 131.
                (h.call, h.copy, h.pause) = (10 * US, 60_000_000, 2 * US);
                (h.rate, h.command) = (3_900_000, 60 * US);
                h.poll = 300;
                (h.transfer, h.buffer, h.fat_buffer) = (Transfer::OpenEnded, 512, true);
            }
            Profile::Esp32 => {
                // Greiman's run of SdFat's bench (github.com/greiman/SdFat/issues/113, 2019): SPI at 30 MHz, the shortest write of
                // 512 B 176 us, the shortest read 187 us, 2868.62 kB/s at a mean of 177 us. The wire takes 137 us of them; 512 B
                // at that speed less the mean is 1.5 us (derived). How the other 40 us part into call, command and card is
                // not known: fitted so that a card of 10 to 20 us is left. The other figures are assumed.
                (h.call, h.copy, h.pause) = (5 * US, 60_000_000, 1_500);
                (h.rate, h.command) = (3_750_000, 20 * US);
                h.poll = 1_000;
                (h.transfer, h.buffer, h.fat_buffer) = (Transfer::OpenEnded, 512, true);
            }
            Profile::PiSdio => {
                // Four lines at 50 MHz less the CRC and gaps; an interrupt and the block layer a command (assumed).
                (h.rate, h.command, h.max_request) = (23_000_000, 150 * US, 512 * KIB);
                (h.poll, h.jitter, h.tail, h.tail_every) = (1_000, 8 * US, 100 * US, 300);
            }
            Profile::Laptop => {
                // USB 3 with a reader that splits at 120 KiB and answers in about 0.3 ms (assumed).
                (h.rate, h.command, h.max_request) = (90_000_000, 300 * US, 120 * KIB);
                (h.split, h.jitter, h.tail, h.tail_every) = (100 * US, 20 * US, 200 * US, 200);
            }
        }
    }
}
