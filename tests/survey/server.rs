//! A PostgreSQL server of its own: a fresh cluster, loopback only, a free port, gone at the end.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub struct Server {
    pub url: String,
    dir: PathBuf,
    bin: PathBuf,
    root: bool,
}

/// PostgreSQL refuses to run as root.
fn command(root: bool, program: &str) -> Command {
    if root {
        let mut c = Command::new("runuser");
        c.args(["-u", "postgres", "--", program]);
        c
    } else {
        Command::new(program)
    }
}

impl Server {
    /// `None` where PostgreSQL is not installed.
    pub fn start() -> Option<Server> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
        let bin = versions.map(|e| e.path().join("bin")).filter(|p| p.join("initdb").exists()).max()?;
        let root = rustix::process::geteuid().is_root();
        let made = command(root, "mktemp").args(["-d", "/tmp/nandscope-pg.XXXXXX"]).output().ok().filter(|o| o.status.success())?;
        let dir = PathBuf::from(String::from_utf8(made.stdout).ok()?.trim());
        let data = dir.join("data");
        let quiet = |c: &mut Command| c.stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/tmp").status().is_ok_and(|s| s.success());
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let s = Server { url: format!("postgres://lab@127.0.0.1:{port}/postgres"), dir, bin, root };
        // Only this test knows the port, and the cluster lives for seconds: no password.
        let init = s.bin.join("initdb");
        assert!(quiet(command(root, init.to_str()?).args(["-A", "trust", "-U", "lab", "--no-sync", "-D"]).arg(&data)), "initdb failed");
        let options = format!("-h 127.0.0.1 -p {port} -k '' -c fsync=off -c max_connections=30");
        let ctl = s.bin.join("pg_ctl");
        let log = s.dir.join("log");
        assert!(
            quiet(command(root, ctl.to_str()?).args(["-w", "-o", &options, "-l"]).arg(&log).arg("-D").arg(&data).arg("start")),
            "pg_ctl start failed"
        );
        Some(s)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ctl = self.bin.join("pg_ctl");
        let stop = command(self.root, &ctl.display().to_string())
            .args(["-m", "immediate", "-D"])
            .arg(self.dir.join("data"))
            .arg("stop")
            .current_dir("/tmp")
            .output();
        let _ = stop;
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
