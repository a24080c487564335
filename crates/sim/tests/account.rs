//! The books: the time of an access is the sum of its events times their costs, and counting them changes nothing.

use nandscope_sim::model::{Copies, FtlKind, State};
use nandscope_sim::{Announced, Card, Costs, Event, Fault, Model, Op, Request, Rng, cards, random, unusual};

/// Reads, writes of many sizes in order and at random, discards, flushes and rests, at a few places of the card.
fn walk(m: &Model, seed: u64, n: u64, mut each: impl FnMut(&mut Card, &mut Card, Request, u64) -> Option<u64>) {
    let (mut books, mut plain) = (Card::new(m, seed).account(), Card::new(m, seed));
    let (sector, mut rng, mut now, mut at) = (m.card.sector, Rng::new(seed, 77), 0, 0);
    let sectors = m.card.capacity / sector;
    let homes: Vec<u64> = (0..6).map(|_| rng.below(sectors)).collect();
    for _ in 0..n {
        let op = match rng.below(40) {
            0..=13 => Op::Read,
            14 => Op::Discard,
            15 => Op::Flush,
            _ => Op::Write,
        };
        let len = [1, 2, 7, 8, 16, 32, 64, 128, 300, 2048][rng.below(10) as usize].min(sectors / 4);
        match rng.below(4) {
            0 => at = homes[rng.below(6) as usize] + rng.below(512),
            1 => at = rng.below(sectors),
            _ => {}
        }
        at = if at + len > sectors { 0 } else { at };
        let len = if op == Op::Flush { 0 } else { len };
        let data = [nandscope_sim::Data::Other, nandscope_sim::Data::Zeros][(rng.below(10) == 0) as usize];
        if rng.below(20) == 0 {
            now += [1_000_000, 80_000_000, 3_000_000_000][rng.below(3) as usize];
        }
        if m.card.pre_erase {
            let what = if rng.below(2) == 0 { Announced::Erase } else { Announced::No };
            books.announce(what);
            plain.announce(what);
        }
        let r = Request { op, at: if op == Op::Flush { 0 } else { at * sector }, len: len * sector, data };
        let Some(done) = each(&mut books, &mut plain, r, now) else { return };
        now = done;
        at += len;
    }
}

/// All accesses of a card add up; those counted, by kind.
fn adds_up(m: &Model, seed: u64, n: u64) -> [u64; Event::ALL.len()] {
    let costs = Costs::of(m);
    let mut seen = [0u64; Event::ALL.len()];
    walk(m, seed, n, |books, plain, r, now| {
        let (a, b) = (books.submit(now, r), plain.submit(now, r));
        assert_eq!(a, b, "{}: counting changes {r:?}", m.name);
        let c = match a {
            Ok(c) => c,
            Err(Fault::Gone | Fault::ReadOnlyMedium) => return None,
            Err(_) => return Some(now + 1_000_000),
        };
        let e = *books.last_events().unwrap();
        assert_eq!(e.ps(&costs), 1000 * (c.done - c.start) as i64, "{}: {r:?} at {now}: {e:?}\n{costs:?}", m.name);
        for kind in Event::ALL {
            seen[kind as usize] += u64::from(e.get(kind) != 0);
        }
        Some(c.done)
    });
    seen
}

#[test]
fn every_access_adds_up() {
    let mut all = [0u64; Event::ALL.len()];
    let mut add = |seen: [u64; Event::ALL.len()]| all.iter_mut().zip(seen).for_each(|(a, s)| *a += s);
    for (name, text) in cards::ALL {
        add(adds_up(&Model::parse(text, name).unwrap(), 3, 1500));
    }
    for seed in 0..150 {
        add(adds_up(&random::card(seed), seed, 400));
        add(adds_up(&unusual::card(seed), seed, 400));
    }
    // What only fitted cards have: a change of erase block, and logs that skip, fill, and copy what is held.
    for seed in 200..280 {
        let mut m = random::card(seed);
        m.nand.change = 700_000 + seed;
        m.card.state = [State::Empty, State::Written][(seed % 2) as usize];
        m.ftl.block.copies = [Copies::Held, Copies::All][(seed / 2 % 2) as usize];
        (m.ftl.block.skips, m.ftl.block.fills) = (seed / 4 % 2 == 0, seed / 8 % 2 == 0);
        (m.ftl.block.begins_full, m.ftl.block.full_closes) = (seed / 16 % 2 == 0, seed / 32 % 2 == 0);
        m.ftl.block.restarts = seed / 64 % 2 == 0;
        (m.card.overlap, m.card.behind) = (seed % 3 == 0, [0, 3_000_000][(seed / 3 % 2) as usize]);
        (m.card.combine, m.card.combine_streams, m.card.combine_starts) = (seed % 5 < 3, seed % 5, seed % 2 == 0);
        m.ftl.page.map_save = 300_000;
        (m.card.streams, m.card.stream_cost, m.card.stream_rate) = (seed % 4, 50_000, 30_000_000);
        (m.host.flushes, m.nand.load_rate) = (seed % 7 == 0, 70_000_000);
        add(adds_up(&m, seed, 400));
    }
    // A read that senses ahead, map units smaller than write units, and blocks announced for erasing.
    let mut m = random::card(1);
    (m.nand.pipelined, m.card.pre_erase) = (true, true);
    add(adds_up(&Model { nand: nandscope_sim::model::Nand { one_ahead: true, ..m.nand.clone() }, ..m.clone() }, 5, 1500));
    m.ftl.kind = FtlKind::WriteThrough;
    add(adds_up(&m, 5, 1500));
    let parts = "name = \"parts\"\n[card]\ncapacity = \"64 MiB\"\n[nand]\npage = \"4 KiB\"\nwrite_unit = \"16 KiB\"\nerase_block = \"256 KiB\"\n\
                 program = 1001\ncopy = 777\nerase = 9999\n[ftl]\nkind = \"page-map\"\nunit = \"4 KiB\"\nover_provisioning = 0.1\n";
    add(adds_up(&Model::parse(parts, "parts").unwrap(), 5, 4000));
    let never: Vec<Event> = Event::ALL.into_iter().filter(|&e| all[e as usize] == 0).collect();
    assert!(never.is_empty(), "no card had these: {never:?}");
}

/// The structure alone gives the counts: other costs, the same events.
#[test]
fn counts_do_not_need_costs() {
    let mut compared = 0;
    for seed in 0..60 {
        let mut m = random::quiet(random::card(seed));
        m.nand.pipelined = false;
        (m.slc.size, m.card.cache) = (0, 0);
        let mut other = m.clone();
        let n = &mut other.nand;
        for cost in [&mut n.sense, &mut n.next_page, &mut n.lookup, &mut n.program, &mut n.commit, &mut n.copy, &mut n.erase] {
            *cost = 1;
        }
        (other.host.command, other.ftl.block.close, other.ftl.log.close) = (7, 5, 5);
        let mut told = vec![];
        let zero = [Event::Rounding, Event::Noise];
        let kinds = || Event::ALL.into_iter().filter(|e| !zero.contains(e));
        walk(&m, seed, 300, |books, _, r, now| {
            let done = books.submit(now, r).ok()?.done;
            told.push(*books.last_events().unwrap());
            Some(done)
        });
        let mut next = told.iter();
        walk(&other, seed, 300, |books, _, r, now| {
            let done = books.submit(now, r).ok()?.done;
            let (a, b) = (books.last_events().unwrap(), next.next().unwrap());
            assert!(kinds().all(|e| a.get(e) == b.get(e)), "{seed}: {r:?}\n{a:?}\n{b:?}");
            compared += 1;
            Some(done)
        });
    }
    assert!(compared > 10_000, "{compared}");
}
