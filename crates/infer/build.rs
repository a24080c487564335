//! Lists the experiments: `every_experiment!` names each file of `src/infer` that has `ANALYSES`, in the order of the alphabet. So a new
//! experiment is two files, and no list has to be kept beside them.

use std::path::Path;
use std::{env, fs};

fn main() {
    // What lies in it as well: a file that comes or goes is seen.
    println!("cargo::rerun-if-changed=src/infer");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo names the directory");
    let files =
        fs::read_dir(Path::new(&here).join("src/infer")).expect("src/infer is there").map(|e| e.expect("src/infer can be read").path());
    let experiment = |text: &str| text.lines().any(|l| l.starts_with("pub(super) const ANALYSES:"));
    let mut names: Vec<String> = files
        .filter(|f| f.extension().is_some_and(|e| e == "rs") && fs::read_to_string(f).is_ok_and(|t| experiment(&t)))
        .map(|f| f.file_stem().expect("it ends in .rs").to_string_lossy().into_owned())
        .collect();
    names.sort();
    let text = format!(
        "/// Hands the files of all experiments to `$then!`, which makes of them what a room wants.\n#[macro_export]\n\
         macro_rules! every_experiment {{\n    ($then:ident) => {{ $then! {{ {} }} }};\n}}\n",
        names.join(" ")
    );
    let out = env::var("OUT_DIR").expect("cargo names where to write");
    fs::write(Path::new(&out).join("experiments.rs"), text).expect("the list can be written");
}
