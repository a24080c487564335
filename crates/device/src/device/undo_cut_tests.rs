//! Journals that were cut, torn or damaged.

use super::*;

/// Where the records of a journal begin, each with its length; and where the last one ends.
fn borders(data: &[u8]) -> Vec<usize> {
    let mut at = HEAD + u32::from_le_bytes(data[12..16].try_into().unwrap()) as usize;
    let mut out = vec![at];
    while at < data.len() {
        let len = u64::from_le_bytes(data[at + 24..at + 32].try_into().unwrap()) as usize;
        at += RECORD_HEAD + if data[at + 4] == 1 { len } else { 0 };
        out.push(at);
    }
    out
}

/// A cut journal never says that all is there: not where a record is torn, and not where it ends with a whole one.
#[test]
fn a_journal_cut_anywhere_lacks_what_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ..) = killed(dir.path());
    let whole = fs::read(&path).unwrap();
    let (cut, ends) = (dir.path().join("cut"), borders(&whole));
    let (header, of, mut seen) = (ends[0], ends.len() as u64 - 1, (0, 0, 0));
    assert!(of > 5 && *ends.last().unwrap() == whole.len());
    let places = (0..header).step_by(7).chain((header..whole.len()).step_by(4093)).chain(header..header + 100);
    for len in places.chain(ends.iter().copied().filter(|&e| e < whole.len())) {
        fs::write(&cut, &whole[..len]).unwrap();
        let there = ends.iter().filter(|&&e| e <= len).count().saturating_sub(1) as u64;
        match Saved::open(&cut).map(|s| s.state) {
            Err(DeviceError::Journal { .. }) if len < header => seen.0 += 1,
            Ok(State::Cut { there: t, of: o }) if ends.contains(&len) && (t, o) == (there, of) => seen.1 += 1,
            Ok(State::Damaged(at)) if at == ends[there as usize] as u64 && !ends.contains(&len) => seen.2 += 1,
            other => panic!("{len}: {other:?}"),
        }
    }
    assert!(seen.0 > 10 && seen.1 as u64 > of && seen.2 > 100, "{seen:?}");
}

/// What was being appended when the program was killed was not yet written over: nothing is missing. Then the header counts one batch less.
#[test]
fn an_end_torn_while_it_was_appended_lacks_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ..) = killed(dir.path());
    let whole = fs::read(&path).unwrap();
    let ends = borders(&whole);
    let before = ends.len() - 2;
    for len in [ends[before], ends[before] + 1, ends[before] + RECORD_HEAD, whole.len() - 1, whole.len()] {
        let mut data = whole[..len].to_vec();
        data[COUNT as usize..HEAD].copy_from_slice(&counted(before as u32));
        fs::write(&path, &data).unwrap();
        let state = Saved::open(&path).unwrap().state;
        let torn = !ends.contains(&len);
        assert_eq!((state, state.lacks()), (if torn { State::Torn } else { State::Whole }, false), "{len} of {}", whole.len());
    }
}

/// A journal of a version that did not count is put back, and vouches for nothing beyond its last record.
#[test]
fn a_journal_without_a_count_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut left, before) = killed(dir.path());
    let mut data = fs::read(&path).unwrap();
    data[COUNT as usize..HEAD].fill(0);
    fs::write(&path, &data).unwrap();
    let saved = Saved::open(&path).unwrap();
    assert_eq!((saved.state, saved.state.lacks()), (State::Uncounted, false));
    assert!(saved.state.trouble().unwrap().contains("did not count its records"));
    saved.put_back(&mut left).unwrap();
    assert!(*left.bytes.lock().unwrap() == before);
}

#[test]
fn damage_in_the_middle_is_told_from_a_torn_end() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut left, before) = killed(dir.path());
    let mut data = fs::read(&path).unwrap();
    let header = HEAD + u32::from_le_bytes(data[12..16].try_into().unwrap()) as usize;
    // The first record is the run of zeros, the second holds 8192 bytes: flip one of those.
    data[header + 2 * RECORD_HEAD + 5000] ^= 1;
    fs::write(&path, &data).unwrap();
    let saved = Saved::open(&path).unwrap();
    assert_eq!(saved.state, State::Damaged((header + RECORD_HEAD) as u64));
    // All the rest still comes back.
    saved.put_back(&mut left).unwrap();
    let now = left.bytes.lock().unwrap();
    let wrong: Vec<usize> = (0..before.len()).filter(|&i| now[i] != before[i]).collect();
    assert!(wrong.iter().all(|i| (4096..12288).contains(i)) && !wrong.is_empty());
}
