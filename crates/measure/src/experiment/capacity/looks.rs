//! What only reads: places that were written, and others that may show them.

use super::*;

/// A card whose reads fail: places over the whole region are read, and the border beyond which none can be is bisected. Writes nothing.
/// The run is one of this experiment.
pub fn readable(device: &mut dyn Device, setup: &Setup) -> Run {
    let mut run = Run::new(ABOUT.name);
    run.setting = setup.setting();
    run.cells = vec![Cell::new("reads only", &[("reads", 1)])];
    let Range { start, end } = setup.region;
    let len = PLACE.max(setup.geometry.sector);
    let look = |run: &mut Run, device: &mut dyn Device, at: u64| {
        let at = at / len * len;
        let a = Access { op: Op::Read, at, len };
        let (role, timed) = match device.access(a) {
            Ok(timed) => (READS, timed),
            // Nothing is left to ask, and what failed before it went says nothing of the size.
            Err(e) if e.is_gone() => return run.samples.clear(),
            Err(_) => (UNREAD, Timed { start: device.now(), took: Nanos(0) }),
        };
        run.extend(vec![Sample { cell: 0, trial: 0, role, op: Op::Read, at, len, start: timed.start, took: timed.took }]);
    };
    if end - start < 64 * len {
        return run;
    }
    for i in 0..=PLACES {
        look(&mut run, device, start + ((end - len - start) as u128 * i as u128 / PLACES as u128) as u64);
    }
    while let Some((good, bad)) = read_border(&run).filter(|(good, bad)| bad - good > CLOSE) {
        look(&mut run, device, good / 2 + bad / 2);
    }
    run
}

/// Some of the single sectors that may show the stretch.
pub(super) fn look_elsewhere(b: &mut Bench, seed: u64) -> Result<(), DeviceError> {
    let sector = b.geometry().sector;
    let (Some(next), Some((from, stretch))) = (elsewhere(b.run), stretch(b.run)) else { return Ok(()) };
    let seed = front(b, from, seed)?;
    let mut shown = 0;
    // What was seen is gone through before each trial: many small ones would cost the computer more time than the card.
    let trial = TRIAL.max(b.run.of(b.cell).count() / 4);
    for at in (next..b.region.end - sector).step_by(stretch as usize).take(trial) {
        let place = look(b, seed, at, sector, [NOTHING, NOTHING])?;
        // The other places repeat at some periods only, the stretch at each.
        shown += place.is_some_and(|p| (from..from + stretch).contains(&p)) as usize;
        if shown == SHOWN_ENOUGH {
            break;
        }
    }
    Ok(())
}

/// Where addresses repeat, all multiples of the distance show the front.
pub(super) fn look_at_multiples(b: &mut Bench, seed: u64) -> Result<(), DeviceError> {
    let (Some(w), Some((from, _)), sector) = (period(b.run), stretch(b.run), b.geometry().sector) else { return Ok(()) };
    let seed = front(b, from, seed)?;
    for at in multiples(b.run, w) {
        look(b, seed, at, sector, [MISSED, MISSED])?;
    }
    Ok(())
}

/// Looks for a place powers of two away; true where it shows there.
pub(super) fn look_for(b: &mut Bench, seed: u64, place: u64) -> Result<bool, DeviceError> {
    let sector = b.geometry().sector;
    for at in powers_away(b.run, place) {
        if !b.run.samples.iter().any(|s| s.at == at && s.len == sector && s.cell == b.cell)
            && look(b, seed, at, sector, [NOTHING, NOTHING])? == Some(place)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Some of the single sectors that a broken address line would have show a place that was kept.
pub(super) fn look_at_pairs(b: &mut Bench, seed: u64) -> Result<(), DeviceError> {
    let (Some((from, _)), sector) = (stretch(b.run), b.geometry().sector) else { return Ok(()) };
    let seed = front(b, from, seed)?;
    for at in pairs(b.run).into_iter().take(TRIAL) {
        look(b, seed, at, sector, [NOTHING, NOTHING])?;
    }
    Ok(())
}

/// Reads a place that was kept, whatever number its stamp carries.
pub(super) fn once_more(b: &mut Bench, at: u64) -> Result<(), DeviceError> {
    let role = |bytes: &[u8]| if read_stamp(bytes).is_some_and(|s| s.0 == at) { KEPT } else { LOST };
    told(b, at, PLACE, role)
}

/// Places that are written anew: the later ones leave less room in a buffer for the first.
const ANEW_PLACES: usize = 3;

/// Writes some places that were kept once more, and reads what they hold then.
pub(super) fn written_anew(b: &mut Bench, seed: u64) -> Result<(), DeviceError> {
    let places: Vec<u64> = places_kept(b.run).into_iter().take(ANEW_PLACES).collect();
    for &at in &places {
        b.write_of(STAMP, Fill::Stamp(seed), at, PLACE)?;
    }
    for &at in &places {
        told(b, at, PLACE, |bytes: &[u8]| if read_stamp(bytes) == Some((at, seed)) { KEPT } else { STALE })?;
    }
    Ok(())
}

/// Reads a place: the roles are of one that shows its own stamp, and of one that shows none of this run. Where it shows that of
/// another place, that is read, too, and returned.
pub(super) fn look(b: &mut Bench, seed: u64, at: u64, len: u64, [own, none]: [u8; 2]) -> Result<Option<u64>, DeviceError> {
    let mut other = None;
    let role = |bytes: &[u8]| match read_stamp(bytes).filter(|s| s.1 == seed) {
        Some((place, _)) if place == at => own,
        Some((place, _)) => {
            other = Some(place);
            ANOTHER
        }
        None => none,
    };
    told(b, at, len, role)?;
    let other = other.filter(|p| b.region.contains(p));
    if let Some(place) = other {
        b.read(SHOWN, place, len)?;
    }
    Ok(other)
}

/// Reads a place whose role follows from what it holds, or from that it cannot be read.
fn told(b: &mut Bench, at: u64, len: u64, role: impl FnOnce(&[u8]) -> u8) -> Result<(), DeviceError> {
    match b.read_back(at, len, role) {
        Err(DeviceError::Io { .. }) => b.failed(UNREAD, at, len),
        done => done?,
    }
    Ok(())
}
