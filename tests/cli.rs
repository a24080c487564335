//! The command line, as documents: `tests/cli/*.md` say what a command prints and how it ends.

#[test]
fn documents_are_true() {
    trycmd::TestCases::new().case("tests/cli/*.md");
}

fn printed(command: &str) -> String {
    let words = command.split_whitespace().map(|w| w.trim_matches('\''));
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).env("COLUMNS", "80").output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim_end().to_string()
}

/// The file holds this, or gets it with NANDSCOPE_WRITE=1.
fn holds(path: &str, text: &str) {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("NANDSCOPE_WRITE").is_some() {
        std::fs::write(&path, text).unwrap();
    } else {
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "NANDSCOPE_WRITE=1 writes {path}");
    }
}

/// Every whole screen in these pages is what the command above it prints.
#[test]
fn the_screens_of_the_pages_are_as_printed() {
    for (path, least) in [("docs/check.md", 3), ("docs/commands.md", 3)] {
        let page = std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut now = page.clone();
        let mut shown = 0;
        for block in page.split("```\n$ nandscope ").skip(1).filter_map(|b| b.split("\n```").next()) {
            let (command, screen) = block.split_once('\n').unwrap();
            // Parts of a screen, those of a shell, and those that need a survey.
            if screen.lines().any(|l| l == "...") || command.contains("$[") || command.starts_with("survey") {
                continue;
            }
            // What follows the report of a simulation are plots, which are left out.
            let all = printed(command);
            let part = if command.starts_with("sim ") { all.split("\n\n").take(3).collect::<Vec<_>>().join("\n\n") } else { all };
            now = now.replace(block, &format!("{command}\n{part}"));
            shown += 1;
        }
        assert!(shown >= least, "{path}: {shown}");
        holds(path, &now);
    }
}

/// Text as a picture of a terminal.
fn screen(command: &str, text: &str) -> String {
    let escaped = |t: &str| t.replace('&', "&amp;").replace('<', "&lt;");
    let lines: Vec<String> = std::iter::once(format!("$ nandscope {command}")).chain(text.lines().map(String::from)).collect();
    let height = 17 * lines.len() + 24;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{height}\" viewBox=\"0 0 720 {height}\" font-family=\"DejaVu Sans Mono, \
         Menlo, Consolas, monospace\" font-size=\"13\">\n<title>nandscope {}</title>\n<rect width=\"720\" height=\"{height}\" rx=\"6\" \
         fill=\"#1d2127\"/>\n",
        escaped(command)
    );
    for (i, line) in lines.iter().enumerate().filter(|l| !l.1.is_empty()) {
        let colour = if i == 0 { "#8fd3a0" } else { "#e4e6e8" };
        out += &format!("<text x=\"14\" y=\"{}\" fill=\"{colour}\" xml:space=\"preserve\">{}</text>\n", 25 + 17 * i, escaped(line));
    }
    out + "</svg>\n"
}

/// The picture of the README and the answer with details are what the program prints, but for three of the four plots.
#[test]
fn the_first_answer_is_shown_as_printed() {
    const PROBE: &str = "probe sim:flashbench-readme";
    holds("docs/pictures/probe.svg", &screen(PROBE, &printed(PROBE)));
    let left_out = ["time of one sequential write", "time of a write, N erase blocks interleaved"];
    let details = printed(&format!("{PROBE} --details"));
    let (shown, others): (Vec<&str>, Vec<&str>) = details.split("\n\n").partition(|p| !left_out.iter().any(|l| p.starts_with(l)));
    assert_eq!(others.len(), 3, "{details}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/probe.md")).unwrap();
    let (head, rest) = page.split_once("left out here):\n\n```\n").unwrap();
    let lead = &page[head.len()..page.len() - rest.len()];
    let (_, tail) = rest.split_once("\n```").unwrap();
    holds("docs/probe.md", &format!("{head}{lead}{}\n```{tail}", shown.join("\n\n")));
}

/// Every page stands in the list of pages, and no link of a page leads nowhere.
#[test]
fn pages_are_listed_and_links_lead_somewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    let mut pages = vec![root.join("README.md"), root.join("METHODS.md"), root.join("DESIGN.md"), root.join("FORMATS.md")];
    for entry in
        std::fs::read_dir(root.join("docs")).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "md"))
    {
        let name = entry.file_name().unwrap().to_str().unwrap();
        assert!(name == "SUMMARY.md" || list.contains(&format!("]({name})")), "docs/SUMMARY.md does not list {name}");
        pages.push(entry);
    }
    let mut links = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|t| t.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") || file.contains(' ') {
                continue;
            }
            assert!(page.parent().unwrap().join(file).exists(), "{}: {link}", page.display());
            links += 1;
        }
    }
    assert!(links >= 40, "{links}");
    let readme = std::fs::metadata(root.join("README.md")).unwrap().len();
    assert!(readme <= 6_000, "README.md: {readme} B; what is not needed first goes to docs/");
}
