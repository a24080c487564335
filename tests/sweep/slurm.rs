//! Slurm on one machine: munged, slurmctld and slurmd of its own, with keys, state and ports that nothing else has, gone at the end.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub struct Slurm {
    dir: tempfile::TempDir,
    /// In the order in which they end.
    daemons: Vec<Child>,
}

/// Daemons are where a user's PATH may not reach.
fn program(name: &str) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    path.split(':').map(|d| format!("{d}/{name}")).find(|p| Path::new(p).exists())
}

fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The first of these programs that is not installed.
pub fn missing() -> Option<&'static str> {
    ["munged", "slurmctld", "slurmd", "sbatch", "sinfo"].into_iter().find(|p| program(p).is_none())
}

impl Slurm {
    /// Starts it; why it does not run here.
    pub fn start() -> Result<Slurm, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut s = Slurm { dir, daemons: vec![] };
        let d = s.dir.path().to_owned();
        let d = d.as_path();
        let words = |w: &[&str]| {
            let out = Command::new(w[0]).args(&w[1..]).output().map_err(|e| e.to_string())?;
            Ok::<String, String>(String::from_utf8_lossy(&out.stdout).trim().to_string())
        };
        let (host, user) = (words(&["hostname", "-s"])?, words(&["id", "-un"])?);
        let [controller, node] = [port(), port()];
        let at = d.display();
        std::fs::write(
            d.join("slurm.conf"),
            format!(
                "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser={user}\nSlurmdUser={user}\nAuthType=auth/munge\nAuthInfo=socket={at}/socket\n\
                 CredType=cred/munge\nMpiDefault=none\nSwitchType=switch/none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
                 JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\nSelectType=select/cons_tres\n\
                 SelectTypeParameters=CR_CPU\nSlurmctldPort={controller}\nSlurmdPort={node}\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool\n\
                 SlurmctldPidFile={at}/controller.pid\nSlurmdPidFile={at}/node.pid\nMailProg=/bin/true\n\
                 NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\nPartitionName=all Nodes={host} Default=YES State=UP\n"
            ),
        )
        .map_err(|e| e.to_string())?;
        let key: Vec<u8> = (0..1024u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ std::process::id() as u8).collect();
        std::fs::write(d.join("key"), key).map_err(|e| e.to_string())?;
        std::fs::set_permissions(d.join("key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(|e| e.to_string())?;
        for sub in ["state", "spool"] {
            std::fs::create_dir(d.join(sub)).map_err(|e| e.to_string())?;
        }
        let path = |name: &str| d.join(name).display().to_string();
        s.daemon(
            "munged",
            &[
                "--foreground".into(),
                // The directory is nobody else's.
                "--force".into(),
                format!("--socket={}", path("socket")),
                format!("--key-file={}", path("key")),
                format!("--pid-file={}", path("munged.pid")),
                format!("--log-file={}", path("munged.log")),
                format!("--seed-file={}", path("seed")),
            ],
        )?;
        s.until("munged makes its socket", || d.join("socket").exists())?;
        s.daemon("slurmctld", &["-D".into()])?;
        s.daemon("slurmd", &["-D".into()])?;
        let idle = || s.command("sinfo").args(["-h", "-o", "%t"]).output().is_ok_and(|o| o.stdout.starts_with(b"idle"));
        s.until("the node is idle", idle)?;
        Ok(s)
    }

    /// A program that talks to this Slurm.
    pub fn command(&self, name: &str) -> Command {
        let mut c = Command::new(program(name).unwrap_or_else(|| name.into()));
        c.env("SLURM_CONF", self.dir.path().join("slurm.conf"));
        c
    }

    fn daemon(&mut self, name: &str, words: &[String]) -> Result<(), String> {
        let log = std::fs::File::create(self.dir.path().join(format!("{name}.out"))).map_err(|e| e.to_string())?;
        let again = log.try_clone().map_err(|e| e.to_string())?;
        let child = self.command(name).args(words).stdin(Stdio::null()).stdout(log).stderr(again).spawn();
        self.daemons.insert(0, child.map_err(|e| format!("{name}: {e}"))?);
        Ok(())
    }

    /// Waits for it, at most as long as a busy machine may take.
    fn until(&self, what: &str, done: impl Fn() -> bool) -> Result<(), String> {
        for _ in 0..200 {
            if done() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let of = |name: &str| std::fs::read_to_string(self.dir.path().join(format!("{name}.out"))).unwrap_or_default();
        let last = |name: &str| of(name).lines().rev().find(|l| l.contains("error")).unwrap_or("").to_string();
        Err(format!("not within 20 s: {what}; {}", ["munged", "slurmctld", "slurmd"].map(last).join(" ")))
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for d in &mut self.daemons {
            if let Some(pid) = rustix::process::Pid::from_raw(d.id() as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            for _ in 0..100 {
                if !matches!(d.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = d.kill();
            let _ = d.wait();
        }
    }
}
