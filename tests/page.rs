//! The report page in a real browser: no console error, all plots drawn, axe-core finds no serious violation, keys work.
//!
//! Needs Debian's `chromium` and, for axe-core, `npm`; without them it says in one line what it skips.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const AXE: &str = "axe-core@4.14.1";

fn nandscope(args: &[&str]) {
    let done = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(matches!(done.code(), Some(0 | 3)), "{args:?}: {done}");
}

fn browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|b| Command::new(b).arg("--version").output().is_ok_and(|o| o.status.success()))
}

/// axe-core from npm, kept below target/.
fn axe() -> Option<String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe-core");
    let script = dir.join("package/axe.min.js");
    if !script.exists() {
        std::fs::create_dir_all(&dir).ok()?;
        let packed = Command::new("npm").args(["pack", "--silent", AXE]).current_dir(&dir).output().ok()?;
        let name = String::from_utf8(packed.stdout).ok()?.trim().to_string();
        Command::new("tar").args(["xzf", &name]).current_dir(&dir).status().ok().filter(|s| s.success())?;
    }
    std::fs::read_to_string(script).ok()
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
  if (window.axe) {
    var r = await axe.run(document, { resultTypes: ["violations"] });
    out.violations = r.violations.map(function (v) { return v.impact + " " + v.id + ": " + v.nodes.slice(0, 3).map(function (n) { return n.target.join(" "); }).join("; "); });
  }
  var p = document.createElement("pre");
  p.id = "result";
  p.textContent = "RESULT" + JSON.stringify(out) + "TLUSER";
  document.body.appendChild(p);
});
</script></body>"#;

fn look(browser: &str, page: &Path, axe: Option<&str>, width: u32, dark: bool) -> serde_json::Value {
    let html = std::fs::read_to_string(page).unwrap();
    let axe = axe.map_or(String::new(), |a| format!("<script>{a}</script>"));
    let html = html.replacen("<head>", &format!("<head>{FIRST}"), 1).replacen("</body>", &format!("{axe}{LAST}"), 1);
    let tried = page.with_extension(format!("{width}{}.html", if dark { "-dark" } else { "" }));
    std::fs::write(&tried, html).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let out = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},900"))
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

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium; the page is not tried in a browser");
        return;
    };
    let axe = axe();
    if axe.is_none() {
        eprintln!("skipped: {AXE} could not be fetched with npm; accessibility is not checked");
    }
    let dir = tempfile::tempdir().unwrap();
    // A card that tells everything, and one that tells nothing.
    for (card, views) in [("sim:flashbench-readme", &[(1280, false), (1280, true), (500, false)][..]), ("sim:null", &[(1280, false)][..])] {
        let (json, page): (PathBuf, PathBuf) = (dir.path().join("r.json"), dir.path().join("r.html"));
        nandscope(&["probe", card, "--quiet", "--json", json.to_str().unwrap()]);
        nandscope(&["report", json.to_str().unwrap(), "--html", page.to_str().unwrap()]);
        for &(width, dark) in views {
            let r = look(browser, &page, axe.as_deref(), width, dark);
            let what = format!("{card} at {width}, dark {dark}: {r:#}");
            assert_eq!(r["problems"], serde_json::json!([]), "{what}");
            assert!(r["figures"].as_u64().unwrap() >= 3 && r["drawn"] == r["figures"] && r["blank"] == serde_json::json!([]), "{what}");
            assert!(r["keys"] == true && r["wide"].as_i64().unwrap() <= 0, "{what}");
            let bad = |v: &&serde_json::Value| v.as_str().is_some_and(|v| v.starts_with("serious") || v.starts_with("critical"));
            assert!(r["violations"].as_array().unwrap().iter().find(bad).is_none(), "{what}");
        }
    }
}
