//! Whoever reads the text may go away, as `| head -1` does: what was measured is saved all the same, and the exit code is that of a run
//! whose text was read.

use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code and what stands in the file, with a reader of standard output or without one.
fn ran(args: &str, file: &Path, read: bool) -> (Option<i32>, Option<String>) {
    let words = args.split(' ').map(|w| if w == "FILE" { file.to_str().unwrap() } else { w });
    let mut child = Command::new(env!("CARGO_BIN_EXE_nandscope"));
    let mut child = child.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    if !read {
        drop(child.stdout.take());
    }
    let code = child.wait_with_output().unwrap().status.code();
    (code, std::fs::read_to_string(file).ok())
}

#[test]
fn a_reader_that_went_away_takes_no_result_with_it() {
    let dir = tempfile::tempdir().unwrap();
    for (i, args) in [
        "bench sim:wintec-1gb --record 512 --file 100kB --json FILE",
        "bench sim:wintec-1gb sim:swissbit-1gb --record 100,512 --file 50kB --json FILE",
        "bench sim:wintec-1gb --against sim:sandisk-c2-2gb --record 512 --file 50kB --json FILE",
        "bench sim:chan-sdc-512mb --chunks 512,2KiB --file 50kB --json FILE",
        "bench sim:chan-sdc-128mb --record 2KiB --file 50kB --no-read --html FILE",
        "probe sim:olpc-good --time 4s --json FILE",
        "probe sim:null --read-only --time 1s --json FILE",
        "probe sim:flashbench-readme --time 20s -q --twin FILE",
        "run scatter sim:fake-error-16gb -q --json FILE",
        "partitions sim:toshiba-emmc --part 8MiB..48MiB --part 64MiB..300MiB --time 3s --json FILE",
        "ab sim:toshiba-emmc --b split=8KiB --size 8KiB --json FILE",
        "check sim:fake-wrap-32gb --json FILE",
        "frag sim:cf-256mb --repeats 2 --folder 10 --states blank --json FILE",
        "sim wintec-1gb --pattern random-4k --requests 300 --json FILE",
    ]
    .into_iter()
    .enumerate()
    {
        let [whole, alone] = [true, false].map(|read| ran(args, &dir.path().join(format!("{i}-{read}")), read));
        assert!(whole.1.as_ref().is_some_and(|t| t.len() > 100), "{args}: {:?}", whole.0);
        // Names of files, times of day: the same length is asked for where the bytes cannot be the same.
        let length = |t: &Option<String>| t.as_ref().map(String::len);
        assert_eq!((alone.0, length(&alone.1)), (whole.0, length(&whole.1)), "{args}");
    }
}

/// A verdict is in the exit code, whoever reads what form of it.
#[test]
fn a_verdict_stays_when_the_reader_of_a_form_went_away() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.json");
    assert_eq!(ran("probe sim:fake-wrap-32gb --time 4m -q --json FILE", &file, true).0, Some(6));
    for args in [
        "check sim:fake-wrap-32gb -q --json -",
        "check sim:fake-wrap-32gb -q --format prom",
        "report FILE",
        "report FILE --html -",
        "report FILE --format csv",
        "infer FILE",
        "infer FILE --json -",
    ] {
        let [whole, alone] = [true, false].map(|read| ran(args, &file, read).0);
        assert_eq!((whole, alone), (Some(6), Some(6)), "{args}");
    }
}

/// `-` is standard input wherever a file goes in, and a start that the card of a report has not is wrong usage, or said to be lost.
#[test]
fn a_report_from_standard_input_and_starts_beyond_its_card() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.json");
    assert_eq!(ran("probe sim:fake-wrap-32gb --time 4m -q --json FILE", &file, true).0, Some(6));
    let of = |words: &[&str], input: &Path| {
        let input = std::fs::File::open(input).unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).stdin(input).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let named = file.to_str().unwrap();
    for words in [vec!["report"], vec!["layout", "check", "--start", "4MiB"], vec!["compare"]] {
        let [from_file, piped] = [named, "-"].map(|f| of(&[&words[..], &[f]].concat(), &file));
        assert!(from_file.0 == piped.0 && from_file.1.len() > 20, "{words:?}: {piped:?}");
        assert_eq!(from_file.1.replace(named, "FILE").len(), piped.1.replace("standard input", "FILE").len(), "{words:?}");
    }
    let lost = of(&["layout", "check", "--start", "8GiB", named], &file);
    assert!(lost.0 == Some(6) && lost.1.starts_with("8 GiB: beyond what the card holds"), "{lost:?}");
    let beyond = of(&["layout", "check", "--start", "32GiB", named], &file);
    assert!(beyond.0 == Some(2) && beyond.2.contains("lies beyond the end of the card"), "{beyond:?}");
    std::fs::write(&file, "").unwrap();
    assert!(of(&["report", "-"], &file).2.contains("it is empty"));
}
