//! The other side of the protocol on a board: firmware/device.c, compiled for this machine, behind a pseudo-terminal.

use crate::nandscope;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn a_board_is_probed_over_its_serial_line() {
    let dir = tempfile::tempdir().unwrap();
    for (compiler, flags) in [("cc", &["-std=c99"][..]), ("g++", &["-x", "c++", "-std=c++11"])] {
        if Command::new(compiler).arg("--version").output().is_err() {
            crate::skip::no_tool("a board behind a serial line", compiler);
            continue;
        }
        let board = dir.path().join(compiler);
        let built = Command::new(compiler)
            .args(flags)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-Ifirmware", "firmware/device.c", "tests/boards/device_host.c", "-o"])
            .arg(&board)
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        for (aus, kib) in [(2, 4096), (5, 1536)] {
            let mut running =
                Command::new(&board).args(["256", &aus.to_string(), &kib.to_string()]).stdout(Stdio::piped()).spawn().unwrap();
            let mut port = String::new();
            BufReader::new(running.stdout.take().unwrap()).read_line(&mut port).unwrap();
            let target = format!("serial:{}@230400", port.trim());
            let run = |more: &[&str]| {
                let common = ["probe", &target, "--quiet", "--json", "-", "--time", "2m"];
                Command::new(nandscope()).args(common).args(more).output().unwrap()
            };
            let refused = run(&["--write"]);
            let probed = run(&["--write", "--consent", "bench board", "--no-undo"]);
            let _ = running.kill();
            let _ = running.wait();
            let text = String::from_utf8_lossy(&refused.stderr);
            assert!(!refused.status.success() && text.contains("--consent 'bench board'"), "{text}");
            let report: serde_json::Value =
                serde_json::from_slice(&probed.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&probed.stderr)));
            let value = |q: &str| crate::finding(&report, q)["value"].as_f64();
            assert_eq!((value("erase_block"), value("open_aus_linear")), (Some(f64::from(kib) * 1024.0), Some(f64::from(aus))), "{report}");
            assert_eq!(
                (value("capacity"), &report["counterfeit"]),
                (Some(f64::from(256 << 20)), &false.into()),
                "what was written is read back"
            );
            assert_eq!(report["target"]["kind"], "disk");
        }
    }
}
