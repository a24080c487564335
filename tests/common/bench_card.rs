//! The program with the second family of cards, built when a test or the tool that fits confidence needs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub fn bench_card() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Tests run from target/PROFILE/deps, examples from target/PROFILE/examples.
        let place = std::env::current_exe().unwrap().parent().and_then(Path::parent).unwrap().to_path_buf();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "-p", "nandscope-bench-card", "--target-dir"]).arg(place.parent().unwrap());
        if place.ends_with("release") {
            cargo.arg("--release");
        }
        let done = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        place.join("bench-card")
    })
}
