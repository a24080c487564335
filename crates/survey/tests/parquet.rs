//! Tables of a survey in columns, as DuckDB and pandas read them: the example prints what the survey and the reports say.
//! NANDSCOPE names the program that makes the reports.

use nandscope_survey::survey::record::Told;
use nandscope_survey::survey::{Place, Survey, export, parquet};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn duckdb_and_pandas_read_the_tables() {
    let Some(program) = std::env::var_os("NANDSCOPE") else {
        eprintln!("skipped: NANDSCOPE names no program that makes reports");
        return;
    };
    let t = tempfile::tempdir().unwrap();
    let (mut files, mut longest) = (vec![], BTreeMap::<String, (usize, u64)>::new());
    for card in ["flashbench-readme", "toshiba-emmc"] {
        let path = t.path().join(format!("{card}.json"));
        let words = ["probe", &format!("sim:{card}"), "--time", "5m", "-q", "--json", path.to_str().unwrap()];
        assert!(Command::new(&program).args(words).stdout(Stdio::null()).status().unwrap().success());
        let v: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for run in v["runs"].as_array().unwrap() {
            let took = run["samples"]["took_ns"].as_array().unwrap();
            let most = took.iter().map(|t| t.as_u64().unwrap()).max().unwrap_or(0);
            let of = longest.entry(run["experiment"].as_str().unwrap().into()).or_default();
            *of = (of.0 + took.len(), of.1.max(most));
        }
        files.push(path);
    }
    let mut s = Survey::begin(&Place::Dir(t.path().join("survey"))).unwrap();
    s.add(&files, &Told { lot: Some("=A,\"1\"".into()), ..Told::default() }, 1_700_000_000, &mut |_, _| {}).unwrap();
    let (rows, _) = s.list(&["published=no".into()], None, false).unwrap();
    assert_eq!(rows.len(), 2);
    let out = t.path().join("out");
    let [values, samples] = parquet::write(&mut s, &rows, false, &out).unwrap();
    assert_eq!(values, export::long(&mut s, &rows, false).unwrap().lines().count() - 1);
    assert_eq!(samples, longest.values().map(|l| l.0).sum::<usize>());
    let table = export::values(&mut s, &rows, false).unwrap();
    let at = |name: &str| table.columns.iter().position(|c| c.0 == name).unwrap();
    let mut want: Vec<String> = vec![];
    for r in table.rows.iter().filter(|r| r[at("quantity")] == "erase_block" && r[at("state")] == "decided") {
        assert_eq!(r[at("lot")], "=A,\"1\"", "a text is as it was given");
        want.push(format!("{}  {}  {:.2}", r[at("name")], r[at("value")], r[at("confidence")].parse::<f64>().unwrap()));
    }
    assert_eq!(want.len(), 2);
    want.sort();
    want.extend(longest.iter().filter(|l| l.1.0 > 0).map(|(e, (n, most))| format!("{e}  {n}  {:.1}", *most as f64 / 1e6)));
    let python = std::env::var_os("NANDSCOPE_PYTHON").map_or_else(|| PathBuf::from("python3"), Into::into);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/parquet.py");
    for tool in ["duckdb", "pandas"] {
        let module = if tool == "pandas" { "import pandas, pyarrow" } else { "import duckdb" };
        if !Command::new(&python).args(["-c", module]).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
            eprintln!("skipped: {tool} is not installed");
            continue;
        }
        let done = Command::new(&python).arg(&script).arg(tool).arg(&out).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout).lines().collect::<Vec<_>>(), want, "{tool}: {done:?}");
    }
}
