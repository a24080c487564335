//! Raw commands to a simulated card.

use super::super::mmc::{CommandPort, Multi, SINGLE_ONLY, Transaction};
use super::super::{Access, DeviceError, Op, Result};
use super::SimDevice;
use crate::units::{Nanos, SECTOR};
use nandscope_sim::model::Transfer;
use nandscope_sim::{Announced, Model};

/// Blocks of a raw transaction: as many as a real one can have.
const MOST_BLOCKS: u32 = 1024;

/// The command interface of a simulated card, in virtual time.
///
/// A model fixes how its host sends requests (`host.transfer`), so the other forms are made from what that costs: single blocks
/// are requests of one sector, an open-ended write is a pre-defined one and then the busy time after its stop command
/// (`card.stop`), less the command that announces the length (`card.announce`); blocks announced for erasing are an open-ended
/// write to a card with `card.pre_erase`. Where the host of the model ends every request with a stop command, the forms without one cannot be had.
impl CommandPort for SimDevice {
    fn supports(&self, how: Multi) -> Result<()> {
        let host = &self.card.model().host;
        let why = match (how, host.transfer) {
            _ if self.geometry.sector != SECTOR => "the card has no blocks of 512 bytes",
            (Multi::SingleBlocks, Transfer::Single | Transfer::Predefined) => return Ok(()),
            (_, Transfer::Single) => SINGLE_ONLY,
            (Multi::Acmd23, _) if self.card.model().card.secure_discard => "ACMD23 is a command of SD cards and this is an MMC",
            _ if host.max_request != 0 && host.max_request < u64::from(MOST_BLOCKS) * SECTOR => {
                "the host of this model splits requests itself"
            }
            (Multi::OpenEnded, _) | (Multi::PreDefined, Transfer::Predefined) => return Ok(()),
            (Multi::Acmd23, _) if self.card.model().card.pre_erase || self.card.model().card.announce > 0 => return Ok(()),
            (Multi::Acmd23, _) => "the card model has no costs for erasing ahead",
            _ => "the host of this model ends every write with a stop command",
        };
        Err(how.unsupported(why))
    }

    fn max_blocks(&self) -> u32 {
        MOST_BLOCKS
    }

    fn transaction(&mut self, t: Transaction) -> Result<Nanos> {
        self.supports(t.how)?;
        let len = u64::from(t.blocks) * SECTOR;
        if t.blocks == 0 || t.blocks > MOST_BLOCKS {
            return Err(DeviceError::OutOfBounds(format!("a raw transaction has 1 to {MOST_BLOCKS} blocks, not {}", t.blocks)));
        }
        let begun = self.now;
        let step = if t.how == Multi::SingleBlocks { SECTOR } else { len };
        // A command that announces comes before the write; CMD55 goes before ACMD23.
        let announce = self.card.model().card.announce;
        self.now += match t.how {
            Multi::PreDefined => announce,
            Multi::Acmd23 => 2 * announce,
            _ => 0,
        };
        self.card.announce(if t.how == Multi::Acmd23 { Announced::Erase } else { Announced::No });
        let written = (t.at..t.at + len).step_by(step as usize).try_for_each(|at| {
            self.now = self.submit(self.now, Access { op: Op::Write(t.fill), at, len: step })?.done;
            Ok(())
        });
        self.card.announce(Announced::No);
        written?;
        let Model { host, card, .. } = self.card.model();
        if matches!(t.how, Multi::OpenEnded | Multi::Acmd23) && host.transfer == Transfer::Predefined {
            self.now += card.stop;
        }
        Ok(Nanos(self.now - begun))
    }
}
