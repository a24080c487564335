//! Servers, mounts and programs, all of which go when a test ends, also when it fails.

use crate::program::WIDE;
use crate::skip;
use nandscope::host::served;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One test at a time: they look at each other's loop devices, and times are better without neighbours.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why no card can be served as a block device here.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".into());
    }
    if let Some(absent) = ["/dev/fuse", "/dev/loop-control"].iter().find(|p| !Path::new(p).exists()) {
        return Some(format!("no {absent}"));
    }
    let kinds = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    (!kinds.lines().any(|l| l.ends_with("\tfuse"))).then(|| "a kernel without FUSE".into())
}

fn on_path(program: &str) -> bool {
    let dirs = std::env::var("PATH").unwrap_or_default();
    dirs.split(':').chain(["/usr/sbin", "/sbin"]).any(|d| Path::new(d).join(program).exists())
}

/// True where `what` can be tested; else says why not.
pub fn can(what: &str, block: bool, programs: &[&str]) -> bool {
    let tool = programs.iter().find(|p| !on_path(p));
    match (missing().filter(|_| block), tool) {
        (Some(why), _) => skip::skipped(what, &why),
        (None, Some(tool)) => skip::no_tool(what, tool),
        (None, None) => return true,
    }
    false
}

/// True where the kernel can mount this kind of filesystem.
pub fn kernel_has(kind: &str) -> bool {
    fs::read_to_string("/proc/filesystems").unwrap_or_default().lines().any(|l| l.trim() == kind)
}

pub fn nandscope() -> Command {
    crate::program::program()
}

/// Runs a program that must succeed.
pub fn run(program: &str, args: &[&str]) -> String {
    let out = output(program, args);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{program} {args:?}: {}\n{text}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    text
}

pub fn output(program: &str, args: &[&str]) -> Output {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    Command::new(program).args(args).env("PATH", path).env("COLUMNS", WIDE).output().unwrap_or_else(|e| panic!("{program}: {e}"))
}

/// A running `nandscope serve`.
pub struct Server {
    pub child: Child,
    /// First line of its output: the device or the URI.
    pub place: String,
    errors: PathBuf,
    _dir: tempfile::TempDir,
}

impl Server {
    pub fn start(args: &[&str]) -> Server {
        Server::try_start(args).unwrap_or_else(|e| panic!("serve {args:?}: {e}"))
    }

    /// What it said on standard error where it did not start.
    pub fn try_start(args: &[&str]) -> Result<Server, String> {
        let dir = tempfile::tempdir().unwrap();
        let errors = dir.path().join("stderr");
        let log = fs::File::create(&errors).unwrap();
        let mut child = nandscope().arg("serve").args(args).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut place = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut place).unwrap();
        let mut server = Server { child, place: place.trim().to_string(), errors, _dir: dir };
        if server.place.is_empty() {
            assert_eq!(server.child.wait().unwrap().code(), Some(1));
            return Err(server.said());
        }
        Ok(server)
    }

    /// Standard error so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    pub fn signal(&self, name: &str) {
        run("kill", &["-s", name, &self.child.id().to_string()]);
    }

    /// Exit code, after at most half a minute.
    pub fn end(&mut self) -> Option<i32> {
        assert!(until(30, || self.child.try_wait().unwrap().is_some()), "the server does not end:\n{}", self.said());
        self.child.wait().unwrap().code()
    }

    /// Ends it as Ctrl-C does, and nothing is left.
    pub fn stop(mut self) {
        self.signal("INT");
        assert_eq!(self.end(), Some(0), "{}", self.said());
        assert!(!self.left(), "{} is left", self.place);
    }

    /// Its device is still there: by its label, because another server may have got the same device since.
    fn left(&self) -> bool {
        let device = self.place.strip_prefix("/dev/");
        device.and_then(served::by_name).is_some_and(|s| s.pid == self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|s| s.is_none()) {
            self.signal("TERM");
            self.signal("TERM");
            if !until(20, || self.child.try_wait().is_ok_and(|s| s.is_some())) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
        if self.left() {
            output("losetup", &["-d", &self.place]);
        }
    }
}

/// Polls for at most `seconds`.
pub fn until(seconds: u64, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > Duration::from_secs(seconds) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// True while a file is attached to the loop device.
pub fn attached(device: &str) -> bool {
    device.strip_prefix("/dev/").is_some_and(|name| Path::new(&format!("/sys/block/{name}/loop/backing_file")).exists())
}

/// True where a served card is mounted at this directory.
pub fn served_at(dir: &Path) -> bool {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    all.lines().any(|l| l.contains(" fuse.nandscope ") && l.contains(&format!(" {} ", dir.display())))
}

/// A mounted filesystem.
pub struct Mounted {
    pub at: PathBuf,
    _dir: tempfile::TempDir,
}

impl Mounted {
    pub fn new(device: &str, kind: &str) -> Mounted {
        let dir = tempfile::tempdir().unwrap();
        run("mount", &["-t", kind, device, dir.path().to_str().unwrap()]);
        Mounted { at: dir.path().to_path_buf(), _dir: dir }
    }

    pub fn unmount(self) {
        run("umount", &[self.at.to_str().unwrap()]);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if fs::read_to_string("/proc/self/mountinfo").unwrap_or_default().contains(&format!(" {} ", self.at.display())) {
            output("umount", &["-l", self.at.to_str().unwrap()]);
        }
    }
}

/// A program in the background, ended with the test.
pub struct Background(pub Child);

impl Background {
    pub fn start(program: &str, args: &[&str]) -> Background {
        Background(Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes that look random and are the same every time.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// One request of a trace in columns: operation, position, length, and how long it took in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    pub op: String,
    pub at: u64,
    pub len: u64,
    pub took: u64,
}

pub fn trace(path: &Path) -> Vec<Traced> {
    let mut text = String::new();
    fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
    let row = |l: &str| {
        let f: Vec<&str> = l.split('\t').collect();
        Traced { took: f[1].parse().unwrap(), op: f[2].to_string(), at: f[3].parse().unwrap(), len: f[4].parse().unwrap() }
    };
    text.lines().skip(2).map(row).collect()
}

/// Writes a model file and gives its path.
pub fn model(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(format!("{name}.toml"));
    fs::write(&path, format!("name = \"{name}\"\nabout = \"for tests\"\n{text}")).unwrap();
    path.display().to_string()
}
