use super::*;

fn says(v: f64, p: f64, by: &str) -> Finding {
    Finding { from: vec![by.into()], ..Finding::decided(Quantity::EraseBlock, v, p) }
}

#[test]
fn agreement_strengthens_and_disagreement_is_told() {
    let both = combine(&[says(4.0, 0.8, "read"), says(4.0, 0.8, "write")]);
    let f = &both.0[0];
    assert!(f.number() == Some(4.0) && f.confidence > 0.95 && f.confidence < 1.0 - LEAST, "{f:?}");
    let against = combine(&[says(4.0, 0.9, "read"), says(8.0, 0.9, "write")]);
    assert!(against.0[0].value.is_none() || against.0[0].confidence <= 0.6, "{against:?}");
    let weak = combine(&[says(4.0, 0.95, "read"), says(8.0, 0.5, "write")]);
    assert_eq!(weak.0[0].number(), Some(4.0));
    assert!(weak.0[0].caveats[0].contains("write says"), "{weak:?}");
    for (sure, other) in [(0.999, 0.9), (0.98, 0.61), (0.999, 0.97)] {
        let f = &combine(&[says(8.0, sure, "read"), says(4.0, other, "write")]).0[0];
        assert!(f.value.is_none() || f.number() == Some(8.0) && f.disputed, "{f:?}");
    }
}

#[test]
fn what_writes_speak_against_is_no_surer_than_they_leave_it() {
    let place = |by: &str| Finding { from: vec![by.into()], ..Finding::decided(Quantity::EraseBlockOffset, 0.0, 0.97) };
    let against = |v: f64, most: f64| Finding {
        from: vec!["write-boundary".into()],
        doubts: Some((v, most)),
        ..Finding::undecided(Quantity::EraseBlock, "smaller")
    };
    let told = |all: &[Finding]| {
        let all = combine(all);
        [Quantity::EraseBlock, Quantity::EraseBlockOffset].map(|q| all.get(q).and_then(|f| Some((f.number()?, f.confidence))))
    };
    let reads = says(16.0, 0.97, READS);
    assert_eq!(told(&[reads.clone(), place(READS), against(16.0, 0.3)]), [None, None]);
    assert_eq!(told(&[reads.clone(), place(READS), against(16.0, 0.85)]), [Some((16.0, 0.85)), Some((0.0, 0.85))]);
    assert_eq!(told(&[reads.clone(), place(READS), against(8.0, 0.3)]), [Some((16.0, 0.97)), Some((0.0, 0.97))]);
    let [block, _] = told(&[reads, says(4.0, 0.97, WALKS), against(16.0, 0.3)]);
    assert!(block.is_some_and(|(v, p)| v == 4.0 && p > 0.95), "{block:?}");
    let walked = [says(20.0, 0.97, WALKS), place(WALKS)];
    assert!(told(&[&walked[..], &[against(20.0, 0.3)]].concat())[0].is_some());
    assert_eq!(told(&[&walked[..], &[against(20.0, 0.3).rivals([(4.0, 0.5)])]].concat()), [None, None], "every fifth boundary");
}

#[test]
fn larger_pages_off_the_grid_that_was_read_are_not_ruled_out() {
    const K: f64 = 1024.0;
    let told = |unit: f64, begin: Finding, block: f64| {
        let all = [Finding::decided(Quantity::EraseBlock, block * K, 0.95), begin, Finding::decided(Quantity::AccessUnit, unit * K, 0.95)];
        combine(&all).get(Quantity::AccessUnit).and_then(Finding::number).map(|n| n / K)
    };
    let at = |k: f64| Finding::decided(Quantity::EraseBlockOffset, k * K, 0.95);
    for (unit, begin, block) in [(16.0, 32.0, 4096.0), (8.0, 8.0, 4096.0), (16.0, 48.0, 3072.0)] {
        assert_eq!(told(unit, at(begin), block), None, "{unit} {begin}");
    }
    for (unit, begin, block) in [(16.0, 0.0, 4096.0), (16.0, 4096.0, 8192.0), (16.0, 1024.0, 4096.0)] {
        assert_eq!(told(unit, at(begin), block), Some(unit), "{unit} {begin}");
    }
    let about = |ends: [f64; 2]| Finding { interval: Some(ends.map(|e| e * K)), ..at(4080.0) };
    assert_eq!(told(16.0, about([4080.0, 4096.0]), 4096.0), Some(16.0), "they may begin at 0");
    assert_eq!(told(16.0, about([4048.0, 4056.0]), 4096.0), None);
}

#[test]
fn planes_are_a_few_pages() {
    const K: f64 = 1024.0;
    let told = |page: f64, planes: f64| {
        let all = [Finding::decided(Quantity::Page, page * K, 0.95), Finding::decided(Quantity::AccessUnit, planes * K, 0.95)];
        combine(&all).get(Quantity::AccessUnit).and_then(Finding::number).map(|n| n / K)
    };
    assert_eq!([told(16.0, 64.0), told(32.0, 128.0), told(16.0, 48.0)], [Some(64.0), Some(128.0), Some(48.0)]);
    assert_eq!([told(16.0, 128.0), told(8.0, 128.0), told(64.0, 512.0)], [None; 3]);
}

#[test]
fn what_settled_in_random_order_is_no_bound_for_a_smaller_count() {
    for (counted, settled) in [(4.0, 45.0), (20.0, 12.0), (1.0, 49.0), (7.0, 29.0)] {
        let linear = Finding::decided(Quantity::OpenAusLinear, counted, 0.95);
        let once = Finding { settled_once: Some(crate::finding::Number(settled)), ..Finding::undecided(Quantity::OpenAusRandom, "") };
        let told = combine(&[linear, once]);
        let f = told.get(Quantity::OpenAusLinear).unwrap();
        assert_eq!((f.number(), f.at_least.map(|b| b.0)), (None, Some((counted - 1.0).max(1.0))), "{f:?}");
    }
}

#[test]
fn a_cache_and_the_other_order_take_back_what_had_no_limit() {
    let no_limit = |q| Finding::at_least(q, 96.0, 0.85, "no cost");
    let page = Finding::decided(Quantity::Mapping, 2.0, 0.9);
    let cache = Finding::at_least(Quantity::WriteCache, 3e8, 0.8, "part of it");
    let all = combine(&[no_limit(Quantity::OpenAusLinear), page.clone(), cache]);
    let undecided = |all: &Findings, q| all.get(q).is_some_and(|f| f.value.is_none() && f.at_least.is_none() && f.confidence == 0.0);
    assert!(undecided(&all, Quantity::OpenAusLinear) && undecided(&all, Quantity::Mapping), "{all:?}");
    let five = Finding::decided(Quantity::OpenAusLinear, 5.0, 0.95);
    let all = combine(&[five, no_limit(Quantity::OpenAusRandom), page]);
    assert!(undecided(&all, Quantity::OpenAusRandom), "{all:?}");
    assert_eq!(all.get(Quantity::OpenAusLinear).unwrap().number(), Some(5.0));
    let (untold, cache) =
        (Finding::undecided(Quantity::OpenAusLinear, "full"), Finding::at_least(Quantity::WriteCache, 3e8, 0.8, "part of it"));
    let all = combine(&[untold, Finding::decided(Quantity::OpenAusRandom, 1.0, 0.88), cache]);
    assert!(undecided(&all, Quantity::OpenAusRandom), "{all:?}");
}

#[test]
fn one_open_au_is_not_told_where_writes_may_begin_inside_units() {
    let decided = |q, v| Finding::decided(q, v, 0.9);
    let (unit, block) = (decided(Quantity::WriteUnit, 8192.0), decided(Quantity::EraseBlock, 4e6));
    let (at, no_unit) = (decided(Quantity::EraseBlockOffset, 0.0), Finding::undecided(Quantity::WriteUnit, "x"));
    let told = |linear: f64, random: f64, others: &[&Finding]| {
        let mut all = vec![decided(Quantity::OpenAusLinear, linear), decided(Quantity::OpenAusRandom, random)];
        all.extend(others.iter().map(|f| (*f).clone()));
        combine(&all).get(Quantity::OpenAusLinear).and_then(Finding::number)
    };
    assert_eq!(told(1.0, 0.0, &[&no_unit, &block, &at]), None);
    assert_eq!(told(1.0, 1.0, &[&unit, &block]), None);
    assert_eq!(told(1.0, 0.0, &[&unit, &block, &at]), Some(1.0));
    assert_eq!(told(1.0, 1.0, &[&no_unit, &block, &at]), Some(1.0));
    assert_eq!(told(3.0, 0.0, &[&no_unit, &block]), Some(3.0));
    // Nor anything else of merges that cost no more than such a unit does.
    for (ms, told) in [(30.0, false), (300.0, true)] {
        let of_merges = [(Quantity::OpenAusRandom, 0.0), (Quantity::CloseCostMs, ms), (Quantity::Mapping, 1.0)];
        let mut all: Vec<Finding> = of_merges.iter().map(|&(q, v)| decided(q, v)).collect();
        all.extend([decided(Quantity::OpenAusLinear, 1.0), no_unit.clone()]);
        let all = combine(&all);
        assert!(of_merges.iter().all(|m| all.get(m.0).is_some_and(|f| f.value.is_some() == told)), "{all:?}");
    }
}

#[test]
fn a_count_is_a_bound_where_random_order_goes_by_history() {
    let linear = |n: f64| Finding::decided(Quantity::OpenAusLinear, n, 0.98).evidence("seen");
    let random = |n: f64| Finding { settled_once: Some(crate::finding::Number(n)), ..Finding::undecided(Quantity::OpenAusRandom, "x") };
    for (counted, settled, bound) in [(19.0, 20.0, 19.0), (20.0, 8.0, 19.0), (5.0, 5.0, 4.0), (7.0, 11.0, 10.0)] {
        let all = combine(&[linear(counted), random(settled)]);
        let f = all.get(Quantity::OpenAusLinear).unwrap();
        assert!(f.value.is_none() && f.at_least.map(|b| b.0) == Some(bound) && f.confidence <= CONTRADICTED, "{f:?}");
        assert_eq!(f.evidence, ["seen"]);
    }
    let plain = Finding::undecided(Quantity::OpenAusRandom, "what was written before takes room");
    assert_eq!(combine(&[linear(19.0), plain]).get(Quantity::OpenAusLinear).unwrap().number(), Some(19.0), "no words decide");
}

#[test]
fn half_as_many_in_random_order_of_a_log_are_a_bound() {
    let told = |linear: Finding, n: f64, from: &str| {
        let random = Finding { from: vec![from.into()], ..Finding::decided(Quantity::OpenAusRandom, n, 0.95) };
        let all = combine(&[linear, random]);
        let f = all.get(Quantity::OpenAusRandom).unwrap();
        (f.number(), f.at_least.map(|b| b.0))
    };
    let counted = |n: f64| Finding::decided(Quantity::OpenAusLinear, n, 0.95);
    for (linear, random) in [(6.0, 3.0), (7.0, 4.0), (2.0, 1.0), (7.0, 3.0)] {
        assert_eq!(told(counted(linear), random, "log"), (None, Some(random)), "{linear} {random}");
    }
    for (linear, random) in [(3.0, 3.0), (6.0, 5.0), (12.0, 3.0), (6.0, 0.0)] {
        assert_eq!(told(counted(linear), random, "log"), (Some(random), None), "{linear} {random}");
    }
    assert_eq!(told(Finding::at_least(Quantity::OpenAusLinear, 8.0, 0.95, "x"), 7.0, "log"), (None, Some(7.0)));
    // A search takes other AUs; those it guessed may be two.
    assert_eq!(told(counted(6.0), 3.0, "open-au-random"), (None, Some(3.0)));
    assert_eq!(told(counted(6.0), 1.0, "open-au-random"), (Some(1.0), None));
    let searched = Finding { from: vec!["open-au-random".into()], ..Finding::decided(Quantity::OpenAusRandom, 3.0, 0.95) };
    let known = combine(&[counted(6.0), searched, Finding::decided(Quantity::EraseBlock, 4194304.0, 0.97)]);
    assert_eq!(known.get(Quantity::OpenAusRandom).and_then(Finding::number), Some(3.0));
    let same = combine(&[
        Finding::at_least(Quantity::OpenAusLinear, 3.0, 0.85, "x"),
        Finding { from: vec!["log".into()], ..Finding::decided(Quantity::OpenAusRandom, 3.0, 0.95) },
    ]);
    let f = same.get(Quantity::OpenAusRandom).unwrap();
    assert!(f.value.is_none() && f.at_least.map(|b| b.0) == Some(3.0) && f.confidence <= SAME, "{f:?}");
}

#[test]
fn tables_of_random_order_that_keep_more_open_are_disputed() {
    let told = |linear: Finding| {
        let random = Finding { from: vec!["log".into()], ..Finding::at_least(Quantity::OpenAusRandom, 8.0, 0.95, "no cliff") };
        combine(&[linear, random])
    };
    for (linear, most) in [
        (Finding::at_least(Quantity::OpenAusLinear, 4.0, 0.85, "a cut"), CONTRADICTED),
        (Finding::undecided(Quantity::OpenAusLinear, "x"), 0.95),
    ] {
        let all = told(linear);
        for q in [Quantity::OpenAusLinear, Quantity::OpenAusRandom] {
            let f = all.get(q).unwrap();
            assert_eq!((f.at_least.map(|b| b.0), f.confidence), (Some(8.0), most), "{f:?}");
        }
    }
}

#[test]
fn random_order_keeps_no_more_open_than_sequential_order() {
    let told = |linear: f64, random: f64| {
        let all =
            combine(&[Finding::decided(Quantity::OpenAusLinear, 6.0, linear), Finding::decided(Quantity::OpenAusRandom, 7.0, random)]);
        [Quantity::OpenAusLinear, Quantity::OpenAusRandom].map(|q| all.get(q).and_then(Finding::number))
    };
    assert_eq!(told(0.98, 0.7), [Some(6.0), None]);
    assert_eq!(told(0.7, 0.98), [None, Some(7.0)]);
}

#[test]
fn a_guess_is_not_told() {
    let f = combine(&[Finding::decided(Quantity::Page, 8192.0, 0.55)]);
    assert!(f.0[0].value.is_none() && f.0[0].reason.as_ref().unwrap().contains("8 KiB, not clearly enough"), "{f:?}");
}

#[test]
fn undecided_gives_way_to_decided_and_bounds() {
    let by = |from: &str, why: &str| Finding { from: vec![from.into()], ..Finding::undecided(Quantity::EraseBlock, why) };
    let f = combine(&[by("au-grid", "no cost known"), by("read-boundary", "flat"), by("au-grid", "no boundary met")]);
    assert_eq!(f.0[0].reason.as_deref(), Some("read-boundary: flat; au-grid: no boundary met"), "what it said last");
    let f = combine(&[Finding::undecided(Quantity::Page, "flat"), Finding::decided(Quantity::Page, 8192.0, 0.7)]);
    assert_eq!(f.0[0].number(), Some(8192.0));
    let f = combine(&[Finding::undecided(Quantity::OpenAusLinear, "x"), Finding::at_least(Quantity::OpenAusLinear, 7.0, 0.9, "room")]);
    assert_eq!(f.0[0].at_least.unwrap().0, 7.0);
}
