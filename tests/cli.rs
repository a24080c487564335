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
    for (path, least) in [("docs/check.md", 3), ("docs/commands.md", 3), ("docs/todays-cards.md", 1)] {
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

/// A command line as a shell reads it, as far as these pages need.
fn words(command: &str) -> Vec<String> {
    let (mut out, mut quoted) = (vec![], false);
    for (i, part) in command.split('"').enumerate() {
        quoted = i % 2 == 1;
        if quoted {
            out.push(part.to_string());
        } else {
            out.extend(part.split_whitespace().map(str::to_string));
        }
    }
    assert!(!quoted || command.ends_with('"'), "{command}");
    out
}

/// The uses are tried in order, each page in a directory of its own, and print what the pages show; of a screen with lines left out (`...`), what
/// is shown stands in it in that order.
#[test]
fn the_uses_are_as_printed() {
    let mut pages: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).unwrap().map(|e| e.unwrap().path()).collect();
    pages.retain(|p| p.file_name().unwrap().to_str().unwrap().starts_with("use-"));
    assert_eq!(pages.len(), 5, "{pages:?}");
    std::thread::scope(|scope| {
        for path in &pages {
            scope.spawn(move || use_is_as_printed(path));
        }
    });
}

fn use_is_as_printed(path: &std::path::Path) {
    let dir = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(path).unwrap();
    let mut now = String::new();
    let mut shown = 0;
    for (i, part) in page.split("```\n").enumerate() {
        now += if i > 0 { "```\n" } else { "" };
        let Some(block) = part.strip_prefix("$ nandscope ") else {
            now += part;
            continue;
        };
        let mut commands: Vec<(&str, Vec<&str>)> = vec![];
        for line in format!("$ nandscope {block}").leak().lines() {
            match line.strip_prefix("$ nandscope ") {
                Some(command) => commands.push((command, vec![])),
                None => commands.last_mut().unwrap().1.push(line),
            }
        }
        for (command, screen) in commands {
            let words = words(command);
            let out = std::process::Command::new(env!("CARGO_BIN_EXE_nandscope"))
                .args(&words)
                .current_dir(dir.path())
                .envs([("COLUMNS", "80"), ("HOME", dir.path().to_str().unwrap())])
                .output()
                .unwrap();
            let printed = String::from_utf8(out.stdout).unwrap();
            assert!(out.status.code().is_some_and(|c| c != 1 && c != 2), "{command}: {}", String::from_utf8_lossy(&out.stderr));
            shown += 1;
            now += &format!("$ nandscope {command}\n");
            if screen.contains(&"...") {
                let mut rest = printed.lines();
                for line in screen.iter().filter(|l| **l != "..." && !l.is_empty()) {
                    assert!(rest.any(|l| l == *line), "{}: {command} does not print (there): {line}\n{printed}", path.display());
                }
                screen.iter().for_each(|l| now += &format!("{l}\n"));
            } else {
                now += printed.trim_end();
                now += if printed.trim_end().is_empty() { "" } else { "\n" };
            }
        }
    }
    assert!(shown >= 2, "{}: {shown}", path.display());
    holds(path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_str().unwrap(), &now);
}

/// The pages of words and of experiments are what the program knows of them.
#[test]
fn words_and_experiments_are_those_of_the_program() {
    use nandscope::finding::Quantity;
    let mut page = String::from(
        "# Words\n\nTerms of flash cards as this program uses them, in the order of the alphabet.\n\n| word | meaning |\n|---|---|\n",
    );
    for (word, meaning) in nandscope::report::words::GLOSSARY {
        page += &format!("| {word} | {meaning} |\n");
    }
    page += "\n## What is measured\n\nThe keys are those of JSON, of `survey search` and of `probe --only`.\n\n| name | key | what it is |\n|---|---|---|\n";
    for q in Quantity::ALL {
        let row = q.row();
        page += &format!("| {} | `{}` | {} |\n", row.title.replace(" <", " below"), row.key, row.what);
    }
    holds("docs/glossary.md", &page);
    let mut page = String::from(
        "# Experiments\n\n`probe` runs those it needs in the order in which they build on each other; `nandscope run NAME TARGET` runs one, with what it \
         needs first. How each answer follows from the times is in [METHODS.md](../METHODS.md).\n",
    );
    for e in nandscope::experiment::all() {
        let about = e.about();
        let answers: Vec<String> = about.answers.iter().map(|q| q.title().replace(" <", " below")).collect();
        let writes = if about.writes { "writes; what was there is put back" } else { "reads only" };
        page += &format!("\n## {}\n\n*{}* ({writes})\n\n{}.\n", about.name, about.question, capital(about.method.trim_end_matches('.')));
        if !answers.is_empty() {
            page += &format!("\nAnswers: {}.\n", answers.join("; "));
        }
    }
    holds("docs/experiments.md", &page);
}

fn capital(text: &str) -> String {
    let mut c = text.chars();
    c.next().map_or(String::new(), |first| first.to_uppercase().chain(c).collect())
}

/// The script for studies draws what it counts.
#[test]
fn a_study_ends_in_a_figure() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: the script for studies: no python3 here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = std::process::Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/reliability.py"))
        .args(["--cards", "3", "--first", "20", "--program", env!("CARGO_BIN_EXE_nandscope"), "--out", "r"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let rows = std::fs::read_to_string(dir.path().join("r.csv")).unwrap();
    let right = rows.lines().filter(|l| l.ends_with(",1")).count();
    assert!(right >= 12 && said.starts_with(&format!("3 cards: {right} of ")), "{said}\n{rows}");
    let svg = std::fs::read_to_string(dir.path().join("r.svg")).unwrap();
    assert!(svg.contains("<circle") && svg.trim_end().ends_with("</svg>"), "{svg}");
}

/// What somebody reads at 80 columns: nothing is wider, tables included, but for an address that has no blank.
#[test]
fn nothing_is_wider_than_80_columns() {
    let dir = tempfile::tempdir().unwrap();
    let run = |command: &str| {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_nandscope"))
            .args(words(command))
            .current_dir(dir.path())
            .envs([("COLUMNS", "80"), ("HOME", dir.path().to_str().unwrap())])
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let help = run("-h");
    let names: Vec<&str> =
        help.lines().filter_map(|l| l.strip_prefix("  ")?.split_whitespace().next()).filter(|n| !n.starts_with('-')).collect();
    assert!(names.len() >= 25, "{help}");
    let mut commands: Vec<String> = names.iter().flat_map(|n| [format!("{n} -h"), format!("{n} --help")]).collect();
    commands.extend(["layout plan --help", "survey compare --help", "-h", "--help"].map(String::from));
    run("probe sim:toshiba-emmc -q --json t.json");
    run("probe sim:sandisk-emmc -q --json s.json");
    run("survey --dir lab add t.json s.json --lot A");
    for command in [
        "probe sim:toshiba-emmc",
        "probe sim:toshiba-emmc --details",
        "check sim:fake-error-16gb",
        "rate sim:modern-a1-32gb",
        "cards",
        "run list",
        "report t.json",
        "infer t.json",
        "compare t.json s.json",
        "layout audit sim:toshiba-emmc --report t.json",
        "layout check --start 63s t.json",
        "bench sim:toshiba-emmc sim:wintec-1gb --file 200kB --log 20kB",
        "bench sim:toshiba-emmc --chunks 2KiB,256KiB --no-read",
        "ab sim:toshiba-emmc --b split=8KiB --pairs 8",
        "life t.json --workload dashcam",
        "sim page-mapped --pattern random-write-4k --requests 2000",
        "survey --dir lab list --no-published",
        "survey --dir lab compare --by lot",
        "format sim:toshiba-emmc",
    ] {
        commands.push(command.into());
    }
    let mut wide = vec![];
    for command in &commands {
        let text = run(command);
        assert!(!text.is_empty(), "{command}");
        wide.extend(text.lines().filter(|l| l.chars().count() > 80 && l.trim().contains(' ')).map(|l| format!("{command}: {l}")));
    }
    assert!(wide.is_empty(), "{wide:#?}");
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
