//! Pages that are made by a program say what it says today.

mod bench;

#[test]
fn the_page_of_cards_is_fresh() {
    let (page, stored) = (bench::page::page(), include_str!("../../../docs/cards.md"));
    for (i, (new, old)) in page.lines().zip(stored.lines()).enumerate() {
        let line = i + 1;
        assert_eq!(new, old, "docs/cards.md:{line}; cargo run -p nandscope-sim --example card_tables > docs/cards.md");
    }
    assert_eq!(page.len(), stored.len(), "docs/cards.md has another length");
}

#[test]
fn every_card_is_on_the_page() {
    let page = include_str!("../../../docs/cards.md");
    for (name, text) in nandscope_sim::cards::ALL {
        let part = page.split(&format!("\n## {name}\n")).nth(1).and_then(|p| p.split("\n## ").next()).unwrap_or_else(|| panic!("{name}"));
        assert!(text.contains("# Truth: "), "{name}: the file states its truth");
        assert!(part.contains("Truth: ") && part.contains("| erase block | offset |"), "{name}");
    }
}
