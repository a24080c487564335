//! Where to listen: a socket in the file system, or a TCP port.

use crate::serve::{Result, ServeError};
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// `unix:PATH` or `tcp:HOST:PORT`; port 0 takes any that is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    Tcp(String),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(s: &str) -> std::result::Result<Address, String> {
        let wrong = || format!("'{s}' is no address; write for example unix:/tmp/card.sock or tcp:localhost:10809");
        match s.split_once(':').ok_or_else(wrong)? {
            ("unix", path) if !path.is_empty() => Ok(Address::Unix(path.into())),
            ("tcp", rest) => match rest.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(Address::Tcp(rest.into())),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(place) => write!(f, "tcp:{place}"),
        }
    }
}

/// A listening socket; a socket in the file system is removed with it.
pub enum Listener {
    Unix { listener: UnixListener, path: PathBuf, inode: u64 },
    Tcp { listener: TcpListener, at: SocketAddr },
}

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// `InTheWay`: somebody listens there, the path is no socket, or other machines could connect and must not.
    pub fn bind(address: &Address, allow_remote: bool) -> Result<Listener> {
        match address {
            Address::Unix(path) => {
                make_room(path)?;
                let failed = |e| ServeError::system(format!("cannot listen at {}", path.display()), e);
                let listener = UnixListener::bind(path).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let path = fs::canonicalize(path).map_err(failed)?;
                let inode = fs::symlink_metadata(&path).map_err(failed)?.ino();
                Ok(Listener::Unix { listener, path, inode })
            }
            Address::Tcp(place) => {
                let failed = |e| ServeError::system(format!("cannot listen at {place}"), e);
                let all: Vec<SocketAddr> = place.to_socket_addrs().map_err(failed)?.collect();
                if let Some(open) = all.iter().find(|a| !a.ip().is_loopback())
                    && !allow_remote
                {
                    return Err(ServeError::Remote(format!(
                        "{} can be reached from other machines, and NBD has no password: use tcp:localhost:{}, or say --allow-remote",
                        open.ip(),
                        open.port()
                    )));
                }
                let listener = TcpListener::bind(&all[..]).map_err(|e| match e.kind() {
                    io::ErrorKind::AddrInUse => ServeError::InTheWay(format!("another program listens at {place}; take another port")),
                    _ => failed(e),
                })?;
                listener.set_nonblocking(true).map_err(failed)?;
                Ok(Listener::Tcp { at: listener.local_addr().map_err(failed)?, listener })
            }
        }
    }

    /// The next client; `WouldBlock` where none waits.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Unix { listener, .. } => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                Ok(Stream::Unix(stream))
            }
            Listener::Tcp { listener, .. } => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    /// As clients want it.
    pub fn uri(&self) -> String {
        match self {
            Listener::Unix { path, .. } => format!("nbd+unix:///?socket={}", escape(path)),
            Listener::Tcp { at, .. } => format!("nbd://{at}"),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix { path, inode, .. } = self
            && fs::symlink_metadata(&*path).is_ok_and(|m| m.ino() == *inode)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the socket of a server that is gone.
fn make_room(path: &Path) -> Result<()> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    let name = path.display();
    if !meta.file_type().is_socket() {
        return Err(ServeError::InTheWay(format!("{name} exists and is no socket; take another path")));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ServeError::InTheWay(format!("another server listens at {name}; end it, or take another path"))),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|e| ServeError::system(format!("cannot remove the old socket {name}"), e))
        }
        Err(e) => Err(ServeError::system(format!("cannot find out whether a server listens at {name}"), e)),
    }
}

/// A path as part of a URI.
fn escape(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~".contains(&b);
    path.as_os_str().as_bytes().iter().map(|&b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// A connected client.
pub enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Unix(s) => s.try_clone().map(Stream::Unix),
            Stream::Tcp(s) => s.try_clone().map(Stream::Tcp),
        }
    }

    /// How long a read waits for the client; none to wait for ever.
    pub fn patience(&self, most: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(s) => s.set_read_timeout(most),
            Stream::Tcp(s) => s.set_read_timeout(most),
        }
    }

    /// Ends the connection for all who hold it.
    pub fn shut_down(&self) {
        // It may have ended by itself.
        let _ = match self {
            Stream::Unix(s) => s.shutdown(Shutdown::Both),
            Stream::Tcp(s) => s.shutdown(Shutdown::Both),
        };
    }
}

impl Read for &Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(s) => (&*s).read(into),
            Stream::Tcp(s) => (&*s).read(into),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(s) => (&*s).write(from),
            Stream::Tcp(s) => (&*s).write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
