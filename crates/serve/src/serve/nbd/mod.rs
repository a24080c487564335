//! A simulated card over the network block device protocol, for virtual machines and for hosts without FUSE: fixed newstyle
//! negotiation, simple replies, read, write, flush, FUA, trim and write-zeroes.
//!
//! Any number of clients may connect; the card serves them one command at a time, as it would one host.

mod address;
mod handshake;
mod transmission;
mod wire;

pub use address::Address;

use super::Result;
use super::engine::{Engine, Stats};
use super::recorder::{Recorder, TraceFile};
use crate::device::realtime;
use address::{Listener, Stream};
use nandscope_sim::Model;
use std::collections::HashMap;
use std::io::{self, BufReader};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Clients served at the same time; one more is turned away.
const CLIENTS: usize = 64;

/// How long a client may be silent before it has chosen the card: one that opens a connection and says nothing takes a place from others.
const SILENT: Duration = Duration::from_millis(if cfg!(test) { 400 } else { 10_000 });

/// How to serve a card over NBD.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen.
    pub address: Address,
    /// Let other machines connect: the protocol has no password and no encryption.
    pub allow_remote: bool,
    /// Writes down every request the card sees.
    pub trace: Option<TraceFile>,
    /// Ask for real-time priority and locked memory, for the whole program.
    pub realtime: bool,
}

impl Options {
    /// The usual way to serve at an address.
    pub fn at(address: Address) -> Options {
        Options { address, allow_remote: false, trace: None, realtime: true }
    }
}

/// What the threads share.
struct Shared {
    engine: Engine,
    /// The name of the export; the empty name means it, too.
    name: String,
    about: String,
    ending: AtomicBool,
    clients: Mutex<HashMap<u64, Stream>>,
    realtime: bool,
}

/// A card being served. Dropping it ends that.
pub struct NbdServer {
    shared: Arc<Shared>,
    uri: String,
    listening: Option<JoinHandle<()>>,
    trace: Option<Recorder>,
}

impl NbdServer {
    /// Makes a card of this model and listens.
    ///
    /// # Errors
    /// `InTheWay` where somebody listens there already, the path is no socket, or the address is not this machine's own;
    /// `System` where the system refuses.
    pub fn start(model: &Model, seed: u64, options: &Options) -> Result<NbdServer> {
        let listener = Listener::bind(&options.address, options.allow_remote)?;
        let mut trace = options.trace.as_ref().map(Recorder::create).transpose()?;
        let shared = Arc::new(Shared {
            engine: Engine::new(model, seed, trace.as_ref()),
            name: model.name.clone(),
            about: model.about.clone(),
            ending: AtomicBool::new(false),
            clients: Mutex::default(),
            realtime: options.realtime,
        });
        if let Some(t) = &mut trace {
            t.begin(&model.name);
        }
        let uri = listener.uri();
        let theirs = Arc::clone(&shared);
        let listening = Some(std::thread::spawn(move || listen(&listener, &theirs)));
        Ok(NbdServer { shared, uri, listening, trace })
    }

    /// Where clients find the card, as a URI that nbdinfo, nbdcopy and qemu understand.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// What was served so far.
    pub fn stats(&self) -> Stats {
        self.shared.engine.stats()
    }

    /// The card is taken out and put in again, between two requests: what only its electronics held is gone.
    pub fn reinsert(&self) {
        self.shared.engine.reinsert();
    }

    /// Ends it: no more clients, and those that are there are cut off.
    ///
    /// # Errors
    /// The trace could not be written to its end.
    pub fn stop(mut self) -> Result<Stats> {
        self.end();
        let stats = self.stats();
        self.trace.as_mut().map_or(Ok(()), Recorder::finish)?;
        Ok(stats)
    }

    fn end(&mut self) {
        self.shared.ending.store(true, Relaxed);
        self.shared.engine.cut();
        if let Some(thread) = self.listening.take() {
            let _ = thread.join();
        }
        self.shared.engine.end_trace();
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.end();
    }
}

fn listen(listener: &Listener, shared: &Arc<Shared>) {
    let mut next = 0u64;
    let mut threads: Vec<JoinHandle<()>> = vec![];
    while !shared.ending.load(Relaxed) {
        threads.retain(|t| !t.is_finished());
        let Ok(stream) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let clients = &mut *shared.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(copy) = stream.try_clone() else { continue };
        if clients.len() >= CLIENTS {
            continue;
        }
        next += 1;
        clients.insert(next, copy);
        let (me, theirs) = (next, Arc::clone(shared));
        threads.push(std::thread::spawn(move || {
            if theirs.realtime {
                realtime();
            }
            // A client that breaks off, or talks nonsense, loses its connection and nothing else.
            let _ = client(&stream, &theirs);
            stream.shut_down();
            theirs.clients.lock().unwrap_or_else(PoisonError::into_inner).remove(&me);
        }));
    }
    for stream in shared.clients.lock().unwrap_or_else(PoisonError::into_inner).values() {
        stream.shut_down();
    }
    for t in threads {
        let _ = t.join();
    }
}

/// One client from beginning to end.
fn client(stream: &Stream, shared: &Shared) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, stream);
    let export =
        handshake::Export { name: &shared.name, about: &shared.about, size: shared.engine.size(), sector: shared.engine.sector() as u32 };
    stream.patience(Some(SILENT))?;
    if handshake::negotiate(&mut input, &mut &*stream, &export)? {
        stream.patience(None)?;
        transmission::serve(&mut input, &mut &*stream, &shared.engine)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
