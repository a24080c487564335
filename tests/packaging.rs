//! The Debian package holds what somebody needs who has no toolchain: the program, its pages, completions.

#[path = "common/skip.rs"]
mod skip;

use std::path::Path;
use std::process::Command;

fn ran(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).env("DPKG_DEB_COMPRESSOR_TYPE", "none").output().unwrap();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_debian_package_is_whole() {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return skip::no_tool("the Debian package", "dpkg-deb");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |p: &Path| p.to_str().unwrap().to_string();
    let program = env!("CARGO_BIN_EXE_nandscope");
    let package = ran(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/deb.sh"), &[program, &path(dir.path())]);
    let package = package.trim();
    let said = ran("dpkg-deb", &["--info", package]);
    assert!(said.contains(concat!("Version: ", env!("CARGO_PKG_VERSION"))) && said.contains("Package: nandscope"), "{said}");
    let root = dir.path().join("root");
    ran("dpkg-deb", &["--extract", package, &path(&root)]);
    let installed = path(&root.join("usr/bin/nandscope"));
    assert_eq!(ran(&installed, &["--version"]), ran(program, &["--version"]));
    assert!(ran(&installed, &["probe", "sim:toshiba-emmc", "--read-only", "--only", "erase_block"]).trim() == "4194304");
    // A page a command, and one of the program; they read as manual pages.
    let help = ran(program, &["help"]);
    let commands = help.lines().take_while(|l| *l != "Options:").filter(|l| l.starts_with("  ")).count();
    let pages: Vec<_> = std::fs::read_dir(root.join("usr/share/man/man1")).unwrap().map(|e| e.unwrap().path()).collect();
    let within = |p: &&std::path::PathBuf| p.file_name().unwrap().to_string_lossy().matches('-').count() > 1;
    let inside = pages.iter().filter(within).count();
    assert!(commands >= 25 && pages.len() == commands + 3 + inside, "{commands} commands and three others: {pages:?}");
    assert!(inside >= 15 && pages.iter().any(|p| p.ends_with("nandscope-cards-show.1.gz")), "{pages:?}");
    for page in pages {
        let text = ran("gzip", &["-dc", &path(&page)]);
        for part in
            [".TH nandscope", ".SH SYNOPSIS", ".SH \"EXIT STATUS\"", ".SH ENVIRONMENT", ".SH FILES", ".SH EXAMPLES", ".SH \"SEE ALSO\""]
        {
            assert!(text.contains(part), "{}: {part}", page.display());
        }
    }
    for (file, knows) in [
        ("usr/share/bash-completion/completions/nandscope", "open-au-linear"),
        ("usr/share/zsh/vendor-completions/_nandscope", "open-au-linear"),
        ("usr/share/fish/vendor_completions.d/nandscope.fish", "partitions"),
        ("usr/share/doc/nandscope/copyright", "MIT"),
        ("usr/share/doc/nandscope/examples/60-nandscope.rules", "mmcblk"),
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(knows), "{file}");
    }
    in_a_root_of_its_own(&root, &installed);
}

/// With nothing on the disk but the package and the C library it names, the program works: there is no toolchain, no shell.
fn in_a_root_of_its_own(root: &Path, installed: &str) {
    // Only root may change the root of a process.
    if ran("id", &["-u"]).trim() != "0" {
        return skip::skipped("the package in a root of its own", "it needs root");
    }
    let libraries = ran("ldd", &[installed]);
    for library in libraries.split_whitespace().filter(|w| w.starts_with('/')) {
        let to = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(library, to).unwrap();
    }
    let inside = |args: &[&str]| {
        let root = root.to_str().unwrap();
        ran("chroot", &[&[root, "/usr/bin/nandscope"], args].concat())
    };
    assert!(!root.join("bin/sh").exists());
    assert_eq!(inside(&["probe", "sim:toshiba-emmc", "--read-only", "--only", "erase_block"]).trim(), "4194304");
    assert!(inside(&["check", "sim:toshiba-emmc", "--quick"]).contains("This card is fine"));
    assert!(inside(&["man", "probe"]).contains(".SH EXAMPLES"));
}

/// What the pages say of the Rust that is needed is what Cargo.toml asks for, and what the container is built with.
#[test]
fn the_needed_rust_is_said() {
    let needed = env!("CARGO_PKG_RUST_VERSION");
    let read = |name: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    assert!(read("README.md").contains(&format!("Rust toolchain ({needed} or later)")));
    assert!(read("packaging/Containerfile").contains(&format!("rust:{needed}-")));
}

/// Every crate makes a package by itself: its dependencies name a version, what it includes is in it, and it says what it is.
#[test]
fn every_crate_can_be_published() {
    if Command::new("cargo").arg("--version").output().is_err() || Command::new("tar").arg("--version").output().is_err() {
        return skip::no_tool("packages of the crates", "cargo or tar");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let out = Command::new("cargo")
        .args(["package", "--workspace", "--no-verify", "--offline", "--allow-dirty", "--quiet"])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", dir.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let made = |name: &str| dir.path().join("package").join(format!("{name}-{}.crate", env!("CARGO_PKG_VERSION")));
    let crates = std::fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut seen = 0;
    for name in crates.map(|c| format!("nandscope-{c}")).chain(["nandscope".to_string()]) {
        let unpacked = dir.path().join(&name);
        std::fs::create_dir(&unpacked).unwrap();
        let tar = Command::new("tar").arg("xzf").arg(made(&name)).args(["--strip-components=1", "-C"]).arg(&unpacked).status().unwrap();
        assert!(tar.success(), "{name}");
        let manifest = std::fs::read_to_string(unpacked.join("Cargo.toml")).unwrap();
        for key in ["description = ", "license = ", "rust-version = "] {
            assert!(manifest.contains(key), "{name}: no {key}");
        }
        assert!(!manifest.contains("path = \"../"), "{name}: {manifest}");
        included(&unpacked.join("src"), &name);
        seen += 1;
    }
    assert!(seen >= 15, "{seen} crates");
}

/// Whatever a source file includes is there.
fn included(dir: &Path, name: &str) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            included(&path, name);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let all = ["include_str!(\"", "include_bytes!(\""].into_iter().flat_map(|m| text.split(m).skip(1));
            for file in all.filter_map(|rest| rest.split('"').next()) {
                assert!(path.with_file_name(file).exists(), "{name}: {} includes {file}, which is not in the package", path.display());
            }
        }
    }
}
