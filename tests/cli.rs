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

/// The first answer of the README is what the program prints, but for three of its four plots. NANDSCOPE_WRITE=1 puts a new one there.
#[test]
fn the_readme_shows_what_is_printed() {
    let probe = ["probe", "sim:flashbench-readme", "-q"];
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_nandscope")).args(probe).env("COLUMNS", "80").output().unwrap();
    let printed = String::from_utf8(out.stdout).unwrap();
    let left_out = ["time of one linear write", "time of a write, N AUs interleaved"];
    let parts: Vec<&str> = printed.trim_end().split("\n\n").collect();
    assert_eq!(parts.iter().filter(|p| left_out.iter().any(|l| p.starts_with(l))).count(), 3, "{printed}");
    let shown: Vec<&str> = parts.into_iter().filter(|p| !left_out.iter().any(|l| p.starts_with(l))).collect();
    let shown = shown.join("\n\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (head, rest) = readme.split_once("```\nsim:flashbench-readme (SD card").unwrap();
    let (block, tail) = rest.split_once("\n```").unwrap();
    if std::env::var_os("NANDSCOPE_WRITE").is_some() {
        std::fs::write(path, format!("{head}```\n{shown}\n```{tail}")).unwrap();
    } else {
        assert_eq!(format!("sim:flashbench-readme (SD card{block}"), shown, "NANDSCOPE_WRITE=1 puts the new one into README.md");
    }
}
