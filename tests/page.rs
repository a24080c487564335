//! The report page, that of a fragmentation experiment, and the survey's site in a real browser: no console error, all plots drawn, axe-core finds no serious violation, keys work.
//!
//! Needs Debian's `chromium` and, for axe-core, `npm`; without them it says in one line what it skips.

#[path = "common/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const AXE: &str = "axe-core@4.14.1";

fn nandscope(args: &[&str]) {
    let done = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(matches!(done.code(), Some(0 | 3 | 6)), "{args:?}: {done}");
}

fn browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|b| Command::new(b).arg("--version").output().is_ok_and(|o| o.status.success()))
}

/// axe-core from npm, kept below target/. Fetched once, by one test while the others wait, and moved into place whole: half a script is a syntax error in every page.
fn axe() -> Option<String> {
    static AXE_CORE: OnceLock<Option<String>> = OnceLock::new();
    AXE_CORE
        .get_or_init(|| {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{AXE}.min.js"));
            if !kept.exists() {
                let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
                let packed = Command::new("npm").args(["pack", "--silent", AXE]).current_dir(&dir).output().ok()?;
                let name = String::from_utf8(packed.stdout).ok()?.trim().to_string();
                Command::new("tar").args(["xzf", &name]).current_dir(&dir).status().ok().filter(|s| s.success())?;
                std::fs::rename(dir.path().join("package/axe.min.js"), &kept).ok()?;
            }
            std::fs::read_to_string(kept).ok()
        })
        .clone()
}

const FIRST: &str = r#"<script>
window.problems = [];
addEventListener("error", function (e) { problems.push("error: " + e.message); });
addEventListener("securitypolicyviolation", function (e) { problems.push("policy: " + e.violatedDirective + " " + e.blockedURI); });
["error", "warn"].forEach(function (k) { console[k] = function () { problems.push(k + ": " + Array.from(arguments).join(" ")); }; });
</script>"#;

/// Opens every fold, looks at the plots, tries the keys, runs axe, and leaves what it found in the document.
const LAST: &str = r#"<script>
addEventListener("load", async function () {
  document.querySelectorAll("details").forEach(function (d) { d.open = true; });
  await new Promise(function (r) { setTimeout(r, 800); });
  var out = { problems: problems, figures: 0, drawn: 0, blank: [], keys: true, wide: document.documentElement.scrollWidth - innerWidth, width: innerWidth, violations: [] };
  document.querySelectorAll("figure[data-figure]").forEach(function (f) {
    out.figures += 1;
    var c = f.querySelector("canvas");
    if (!c) { out.blank.push(f.dataset.figure); return; }
    out.drawn += 1;
    var d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set();
    for (var i = 0; i < d.length; i += 4) if (d[i + 3] > 0) seen.add(d[i] + "," + d[i + 1] + "," + d[i + 2]);
    if (seen.size < 4) out.blank.push(f.dataset.figure + " has " + seen.size + " colours");
  });
  var live = document.querySelector(".live");
  if (live) {
    var hint = live.parentNode.querySelector(".hint"), before = hint.textContent;
    live.focus();
    live.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    out.keys = document.activeElement === live && hint.textContent !== before;
  }
  var map = document.querySelector("figure[data-map] svg");
  if (map) {
    var told = map.closest("figure").querySelector(".hint"), idle = told.textContent;
    map.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    var first = told.textContent;
    map.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
    out.map = [idle, first, told.textContent];
  }
  var q = document.getElementById("q");
  if (q) {
    out.search = ["", "greiman wintec", "nosuchcardanywhere"].map(function (w) {
      q.value = w;
      q.dispatchEvent(new Event("input", { bubbles: true }));
      return [document.querySelectorAll('#cards tbody tr:not([hidden])').length, document.getElementById("count").textContent, location.hash];
    });
    q.value = "";
    q.dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (window.axe) {
    var r = await axe.run(document, { resultTypes: ["violations"] });
    out.violations = r.violations.map(function (v) { return v.impact + " " + v.id + ": " + v.nodes.slice(0, 3).map(function (n) { return n.target.join(" "); }).join("; "); });
  }
  var p = document.createElement("pre");
  p.id = "result";
  p.textContent = "RESULT" + JSON.stringify(out) + "TLUSER";
  document.body.appendChild(p);
  if (parent !== window) parent.postMessage(p.textContent, "*");
});
</script></body>"#;

/// A page as narrow as no window is; what it says of itself ends up in this document.
const FRAME: &str = r#"<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>frame</title></head><body>
<iframe src="SOURCE" title="page" style="width:WIDTHpx;height:900px;border:0"></iframe>
<script>
addEventListener("message", function (e) {
  var p = document.createElement("pre");
  p.textContent = e.data;
  document.body.appendChild(p);
});
</script></body></html>"#;

fn look(browser: &str, page: &Path, axe: Option<&str>, width: u32, dark: bool) -> serde_json::Value {
    let html = std::fs::read_to_string(page).unwrap();
    let axe = axe.map_or(String::new(), |a| format!("<script>{a}</script>"));
    let html = html.replacen("<head>", &format!("<head>{FIRST}"), 1).replacen("</body>", &format!("{axe}{LAST}"), 1);
    let tried = page.with_extension(format!("{width}{}.html", if dark { "-dark" } else { "" }));
    std::fs::write(&tried, html).unwrap();
    // A window has 500 pixels at least; a telephone is a frame in it.
    let tried = if width >= 500 {
        tried
    } else {
        let frame = tried.with_extension("frame.html");
        let source = tried.file_name().unwrap().to_str().unwrap();
        std::fs::write(&frame, FRAME.replace("SOURCE", source).replace("WIDTH", &width.to_string())).unwrap();
        frame
    };
    let profile = tempfile::tempdir().unwrap();
    let out = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={},900", width.max(500)))
        .args(dark.then_some("--blink-settings=preferredColorScheme=0"))
        .arg(format!("file://{}", tried.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&out.stdout);
    let text = dom
        .rsplit_once("RESULT")
        .and_then(|x| x.1.split_once("TLUSER"))
        .unwrap_or_else(|| panic!("the page did not finish: {dom:.2000}"))
        .0;
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap()
}

/// What every page must be: no error, all plots drawn, as wide as the screen, nothing serious for axe.
fn sound(r: &serde_json::Value, what: &str) {
    let none = |key: &str| r[key].as_array().is_some_and(Vec::is_empty);
    assert!(none("problems") && none("blank"), "{what}: {r:#}");
    assert_eq!(r["figures"], r["drawn"], "{what}: {r:#}");
    assert!(r["keys"] == true && r["wide"].as_i64().unwrap() <= 0, "{what}: {r:#}");
    let bad = |v: &serde_json::Value| v.as_str().is_some_and(|v| v.starts_with("serious") || v.starts_with("critical"));
    assert!(!r["violations"].as_array().unwrap().iter().any(bad), "{what}: {r:#}");
}

struct Tools {
    browser: &'static str,
    axe: Option<String>,
    dir: tempfile::TempDir,
}

/// `None` where there is no browser.
fn tools() -> Option<Tools> {
    let Some(browser) = browser() else {
        skip::no_tool("pages in a browser", "chromium");
        return None;
    };
    let axe = axe();
    if axe.is_none() {
        skip::skipped("accessibility", &format!("{AXE} could not be fetched with npm"));
    }
    Some(Tools { browser, axe, dir: tempfile::tempdir().unwrap() })
}

impl Tools {
    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_string()
    }

    /// Sheets of paper that a page prints on.
    fn sheets(&self, page: &str) -> usize {
        let (pdf, profile) = (self.path("printed.pdf"), tempfile::tempdir().unwrap());
        let out = Command::new(self.browser)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-pdf-header-footer"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--print-to-pdf={pdf}"))
            .arg(format!("file://{page}"))
            .output()
            .unwrap();
        let bytes = std::fs::read(&pdf).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
        String::from_utf8_lossy(&bytes).split("/Type /Page").skip(1).filter(|rest| !rest.starts_with('s')).count()
    }

    fn look(&self, page: &str, width: u32, dark: bool) -> serde_json::Value {
        let r = look(self.browser, Path::new(page), self.axe.as_deref(), width, dark);
        sound(&r, &format!("{page} at {width}{}", if dark { ", dark" } else { "" }));
        r
    }
}

/// A desk and a telephone, light and dark.
const VIEWS: [(u32, bool); 4] = [(1200, false), (1200, true), (400, false), (400, true)];
/// Of pages that are made as others are.
const FEW: [(u32, bool); 2] = [(1200, false), (400, true)];

#[test]
fn the_page_works_in_a_browser() {
    let Some(t) = tools() else { return };
    let (json, page) = (t.path("r.json"), t.path("r.html"));
    // A card that tells everything, and one that tells nothing.
    nandscope(&["probe", "sim:flashbench-readme", "--quiet", "--json", &json]);
    nandscope(&["report", &json, "--html", &page]);
    for (width, dark) in VIEWS {
        assert!(t.look(&page, width, dark)["figures"].as_u64().unwrap() > 10);
    }
    nandscope(&["probe", "sim:null", "--quiet", "--json", &json]);
    nandscope(&["report", &json, "--html", &page]);
    t.look(&page, 1200, false);
}

/// The answer alone prints on two sheets, of a card that tells everything and of a counterfeit; lots on one; both are sound on every screen.
#[test]
fn brief_pages_print_on_few_sheets() {
    let Some(t) = tools() else { return };
    let (json, page, store) = (t.path("r.json"), t.path("brief.html"), t.path("survey"));
    for (i, card) in ["flashbench-readme", "fake-wrap-32gb", "modern-a1-32gb"].into_iter().enumerate() {
        nandscope(&["probe", &format!("sim:{card}"), "--quiet", "--json", &json]);
        nandscope(&["report", &json, "--brief", "--html", &page]);
        assert!(std::fs::metadata(&page).unwrap().len() < 60_000);
        let sheets = t.sheets(&page);
        assert!((1..=2).contains(&sheets), "{card}: {sheets} sheets");
        nandscope(&["survey", "--dir", &store, "add", &json, "--lot", ["A", "B", "C"][i]]);
        if i == 0 {
            FEW.iter().for_each(|(width, dark)| drop(t.look(&page, *width, *dark)));
        }
    }
    let lots = t.path("lots.html");
    nandscope(&["survey", "--dir", &store, "compare", "--by", "lot", "--html", &lots]);
    assert_eq!(t.sheets(&lots), 1);
    FEW.iter().for_each(|(width, dark)| drop(t.look(&lots, *width, *dark)));
}

/// A small experiment, alone and in the page of a report: maps that answer to the keys.
#[test]
fn a_map_of_fragments_works_in_a_browser() {
    let Some(t) = tools() else { return };
    let (json, lab, page) = (t.path("r.json"), t.path("lab.json"), t.path("lab.html"));
    let small = ["--size", "64MiB", "--sizes", "512,32KiB", "--repeats", "2", "--folder", "0", "--passes", "5", "--no-class", "--quiet"];
    nandscope(&[&["frag", "sim:cf-256mb", "--json", lab.as_str()][..], &small[..]].concat());
    nandscope(&["report", &lab, "--html", &page]);
    for (width, dark) in FEW {
        let r = t.look(&page, width, dark);
        assert_eq!(r["figures"], 3, "write, read, both");
        let told = r["map"].as_array().unwrap();
        assert!(told[1].as_str().unwrap().starts_with("0 B to 1 MiB: ") && told[2].as_str().unwrap().contains("to 64 MiB"), "{told:?}");
    }
    nandscope(&["probe", "sim:flashbench-readme", "--read-only", "--quiet", "--json", &json]);
    nandscope(&["report", &json, "--frag", &lab, "--html", &page]);
    let r = t.look(&page, 1200, false);
    assert!(r["figures"].as_u64().unwrap() > 5 && r["map"].is_array(), "{r:#}");
}

/// The site of a survey: its list and search, and the page of a published card, of a log, of a report.
#[test]
fn the_survey_site_works_in_a_browser() {
    let Some(t) = tools() else { return };
    let (json, store, site) = (t.path("r.json"), t.path("survey"), t.path("site"));
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/figures/record-bench.txt");
    nandscope(&["probe", "sim:null", "--read-only", "--quiet", "--json", &json]);
    nandscope(&["survey", "--dir", &store, "add", &json, log]);
    nandscope(&["survey", "--dir", &store, "site", &site]);
    for (width, dark) in FEW {
        let r = t.look(&format!("{site}/index.html"), width, dark);
        let search = r["search"].as_array().unwrap();
        let all = search[0][0].as_u64().unwrap();
        assert!(all >= 22 && search[0][1] == format!("{all} cards"), "{search:?}");
        assert_eq!((&search[1][0], &search[1][1], &search[1][2]), (&1.into(), &"1 card".into(), &"#greiman%20wintec".into()));
        assert_eq!((&search[2][0], &search[2][1]), (&0.into(), &"0 cards".into()));
    }
    let pages: Vec<PathBuf> = std::fs::read_dir(format!("{site}/cards")).unwrap().map(|e| e.unwrap().path()).collect();
    let own = pages.iter().filter(|p| !p.to_str().unwrap().contains("/ref-")).count();
    assert_eq!(own, 2, "the report and the log");
    for p in pages.iter().filter(|p| !p.to_str().unwrap().contains("/ref-") || p.ends_with("ref-greiman-atp-slc-1gb.html")) {
        t.look(p.to_str().unwrap(), 1200, true);
        t.look(p.to_str().unwrap(), 400, false);
    }
}

/// Two of today's cards in common pictures: the page of `compare`, the first page of a survey, and a card's page there.
#[test]
fn cards_drawn_together_work_in_a_browser() {
    let Some(t) = tools() else { return };
    let (a, b, page, store, site) = (t.path("a.json"), t.path("b.json"), t.path("c.html"), t.path("survey"), t.path("site"));
    for (seed, json) in [(21, &a), (33, &b)] {
        nandscope(&["run", "map-window", &format!("sim:random-today?seed={seed}"), "--quiet", "--json", json]);
    }
    nandscope(&["compare", &a, &b, "--html", &page]);
    nandscope(&["survey", "--dir", &store, "add", &a, &b]);
    nandscope(&["survey", "--dir", &store, "site", &site]);
    let drawn = |page: &str| {
        FEW.iter().for_each(|&(width, dark)| {
            t.look(page, width, dark);
        });
        std::fs::read_to_string(page).unwrap()
    };
    let compared = drawn(&page);
    let lines = |html: &str, of: &str| {
        let svg =
            html.split("<svg").skip(1).find(|s| s.contains(&format!(">{of}</title>"))).unwrap_or_else(|| panic!("no picture of {of}"));
        svg.split("</svg>").next().unwrap().matches("<polyline").count()
    };
    const WINDOW: &str = "random reads over the window they fall in";
    assert_eq!(lines(&compared, WINDOW), 2, "a line a card");
    assert_eq!(lines(&drawn(&format!("{site}/index.html")), WINDOW), 2);
    let own = std::fs::read_dir(format!("{site}/cards")).unwrap().map(|e| e.unwrap().path());
    for p in own.filter(|p| !p.to_str().unwrap().contains("/ref-")) {
        assert_eq!(lines(&drawn(p.to_str().unwrap()), WINDOW), 1, "{p:?}");
    }
}
