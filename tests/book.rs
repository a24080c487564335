//! The book of docs/: every page is listed, mdBook (here as a library) makes it a page of the book, and links lead somewhere.

use std::collections::HashSet;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a heading is linked by: small letters and digits, blanks as hyphens.
fn anchors(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut all = vec![];
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if let (false, Some(title)) = (fenced, line.strip_prefix('#')) {
            let title = title.trim_start_matches('#').trim().to_lowercase();
            all.push(title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).collect::<String>().replace(' ', "-"));
        }
    }
    all
}

/// The list of pages has only headings and entries, each page once.
#[test]
fn the_list_of_pages_is_one_of_a_book() {
    let root = root();
    let list = std::fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    let entries: Vec<&str> =
        list.lines().filter_map(|l| l.strip_prefix("- [")).map(|l| l.split_once("](").unwrap().1.trim_end_matches(')')).collect();
    let mut once = entries.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), entries.len(), "{entries:?}");
    for needed in ["glossary.md", "confidence.md", "card-models.md", "experiments.md"] {
        assert!(entries.contains(&needed), "{needed}");
    }
    assert_eq!(entries.iter().filter(|e| e.starts_with("use-")).count(), 5);
    for e in &entries {
        let page = std::fs::read_to_string(root.join("docs").join(e)).unwrap();
        assert!(page.starts_with("# ") && page.lines().count() > 5, "{e}");
    }
    let experiments = std::fs::read_to_string(root.join("docs/experiments.md")).unwrap();
    for e in nandscope::experiment::all() {
        assert!(experiments.contains(&format!("\n## {}\n", e.about().name)), "{}", e.about().name);
    }
    // mdBook takes no text between its lists.
    let other = list.lines().find(|l| !l.is_empty() && !l.starts_with("# ") && !l.starts_with("- ["));
    assert_eq!(other, None, "docs/SUMMARY.md");
}

/// The values of an attribute, in the order of the page.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    html.split(&format!(" {attribute}=\"")).skip(1).filter_map(|t| t.split('"').next()).collect()
}

#[test]
fn the_book_is_built_and_its_links_hold() {
    let out = tempfile::tempdir().unwrap();
    let mut book = mdbook_driver::MDBook::load(root()).unwrap();
    book.config.build.build_dir = out.path().to_path_buf();
    book.build().unwrap();

    let list = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let pages: Vec<String> =
        list.lines().filter_map(|l| l.split_once(".md)")?.0.rsplit_once('(')).map(|(_, name)| format!("{name}.html")).collect();
    assert!(pages.len() >= 30, "{pages:?}");
    let html = |name: &str| std::fs::read_to_string(out.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (mut links, mut headings) = (0, 0);
    for page in pages.iter().map(String::as_str).chain(["index.html", "toc.html"]) {
        let text = html(page);
        assert!(page == "toc.html" || text.contains("<h1 id="), "{page} has no title");
        for link in values(&text, "href").into_iter().chain(values(&text, "src")) {
            // What lies beside docs/ is no page of the book: the next test holds it.
            if link.contains("://") || link.starts_with("../") {
                continue;
            }
            links += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let aim = if file.is_empty() { page } else { file };
            assert!(out.path().join(aim).is_file(), "{page}: {link}");
            if !heading.is_empty() {
                headings += 1;
                let text = html(aim);
                assert!(values(&text, "id").into_iter().collect::<HashSet<_>>().contains(heading), "{page}: {link}");
            }
        }
    }
    assert!(links >= 500 && headings >= 150, "{links} links, {headings} of them to headings");
}

/// Every page stands in the list of pages, and no link of a page leads nowhere.
#[test]
fn pages_are_listed_and_links_lead_somewhere() {
    let root = root();
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
            if link.is_empty() || link.contains("://") || link.contains(' ') {
                continue;
            }
            let aim = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(aim.exists(), "{}: {link}", page.display());
            links += 1;
            if let Some((_, anchor)) = link.split_once('#') {
                assert!(anchors(&std::fs::read_to_string(&aim).unwrap()).contains(&anchor.to_string()), "{}: {link}", page.display());
            }
        }
    }
    assert!(links >= 40, "{links}");
    let readme = std::fs::metadata(root.join("README.md")).unwrap().len();
    assert!(readme <= 6_000, "README.md: {readme} B; what is not needed first goes to docs/");
}
