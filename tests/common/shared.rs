//! Files that other people published: they lie beside the project, in `../shared/published`, and are no part of it.
#![allow(dead_code)]

use super::skip::skipped;
use std::path::{Path, PathBuf};

/// Where a published file or folder lies; where it is not there, one line that says what is left out.
pub fn published(what: &str, name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/published").join(name);
    if path.exists() {
        return Some(path);
    }
    skipped(what, &format!("../shared/published/{name} is not there"));
    None
}
