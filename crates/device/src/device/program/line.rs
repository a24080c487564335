//! The way to a device that speaks in lines: a program's pipes, or a serial port.

use crate::units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::termios::{OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// No line of the protocol is longer; what is, is no such line.
const LONGEST: usize = 1 << 20;
/// A program that was asked to end gets so long before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// Both directions. A program is ended, and its end waited for, when this is dropped.
pub struct Line {
    to: Option<OwnedFd>,
    from: OwnedFd,
    child: Option<Child>,
    buffer: Vec<u8>,
    /// Of the buffer, what was given out.
    used: usize,
    /// Longest wait for an answer.
    pub timeout: Duration,
}

impl Line {
    /// Starts a program.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(words: &[String]) -> io::Result<Line> {
        let (program, args) = words.split_first().ok_or_else(|| io::Error::other("no command after exec:"))?;
        let mut command = Command::new(program);
        // In a group of its own: Ctrl-C is for nandscope, which ends the program in order.
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else { return Err(io::Error::other("no pipes")) };
        Ok(Line::over(Some(OwnedFd::from(to)), OwnedFd::from(from), Some(child)))
    }

    /// Opens a serial port as it is, all bytes passed unchanged.
    ///
    /// # Errors
    /// It cannot be opened, or is no serial port.
    pub fn serial(path: &str, baud: u32) -> io::Result<Line> {
        let from = open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let mut settings = tcgetattr(&from)?;
        settings.make_raw();
        settings.set_speed(baud)?;
        tcsetattr(&from, OptionalActions::Now, &settings)?;
        tcflush(&from, QueueSelector::IOFlush)?;
        let to = from.try_clone()?;
        Ok(Line::over(Some(to), from, None))
    }

    fn over(to: Option<OwnedFd>, from: OwnedFd, child: Option<Child>) -> Line {
        Line { to, from, child, buffer: Vec::with_capacity(1 << 16), used: 0, timeout: Duration::from_secs(30) }
    }

    /// Sends what may be several lines.
    ///
    /// # Errors
    /// A text that says what happened.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let Some(to) = &self.to else { return Err("it was ended".into()) };
            match retry_on_intr(|| write(to, bytes)) {
                Ok(n) => bytes = &bytes[n..],
                Err(Errno::PIPE | Errno::IO) => return Err(self.ended()),
                Err(e) => return Err(format!("it cannot be written to: {e}")),
            }
        }
        Ok(())
    }

    /// The next line, without its end. `more` is waited beside the usual time.
    ///
    /// # Errors
    /// A text that says what happened: it ended, it is silent, its line has no end.
    pub fn next(&mut self, more: Nanos) -> Result<&[u8], String> {
        let patience = self.timeout.saturating_add(Duration::from_nanos(more.0));
        let (mut begun, mut looked) = (None, self.used);
        let end = loop {
            if let Some(i) = self.buffer[looked..].iter().position(|&b| b == b'\n') {
                break looked + i;
            }
            looked = self.buffer.len();
            if self.buffer.len() - self.used > LONGEST {
                return Err("it sends a line without an end".into());
            }
            if self.used > 0 {
                self.buffer.drain(..self.used);
                looked -= self.used;
                self.used = 0;
            }
            let begun = *begun.get_or_insert_with(Instant::now);
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() || !self.wait(left)? {
                return Err(format!("it did not answer within {} s", patience.as_secs_f64()));
            }
            let mut part = [0; 1 << 14];
            match retry_on_intr(|| read(&self.from, &mut part)) {
                Ok(0) | Err(Errno::IO) => return Err(self.ended()),
                Ok(n) => self.buffer.extend_from_slice(&part[..n]),
                Err(e) => return Err(format!("it cannot be read: {e}")),
            }
        };
        let start = std::mem::replace(&mut self.used, end + 1);
        let line = &self.buffer[start..end];
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Waits until there is something to read.
    fn wait(&self, left: Duration) -> Result<bool, String> {
        let end = Instant::now() + left;
        let time = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN)], Some(&time)) {
            Ok(n) => Ok(n > 0),
            Err(Errno::INTR) => self.wait(end.saturating_duration_since(Instant::now())),
            Err(e) => Err(format!("it cannot be waited for: {e}")),
        }
    }

    /// How it came to an end.
    fn ended(&mut self) -> String {
        let Some(child) = &mut self.child else { return "it hung up".into() };
        let begun = Instant::now();
        while begun.elapsed() < GRACE {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return "it ended".into(),
                Ok(Some(status)) => return format!("it ended with {status}"),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        "it closed its output".into()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = self.send(b"q\n");
        self.to = None;
        let Some(child) = &mut self.child else { return };
        let begun = Instant::now();
        while begun.elapsed() < GRACE {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // With all it started itself.
        let _ = Pid::from_raw(child.id() as i32).map(|group| kill_process_group(group, Signal::KILL));
        let _ = child.kill();
        let _ = child.wait();
    }
}
