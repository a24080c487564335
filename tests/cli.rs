//! The command line, as documents: `tests/cli/*.md` say what a command prints and how it ends.

#[test]
fn documents_are_true() {
    trycmd::TestCases::new().case("tests/cli/*.md");
}

/// Every whole screen in `docs/check.md` is what the command above it prints.
#[test]
fn the_cards_of_the_page_on_check_are_as_printed() {
    let page = include_str!("../docs/check.md");
    let mut shown = 0;
    for block in page.split("```\n$ nandscope ").skip(1).filter_map(|b| b.split("\n```").next()) {
        let (command, screen) = block.split_once('\n').unwrap();
        if screen.starts_with("...") {
            continue;
        }
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_nandscope")).args(command.split(' ')).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout).trim_end(), screen, "nandscope {command}");
        shown += 1;
    }
    assert!(shown >= 3, "{shown}");
}
