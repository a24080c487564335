//! A client that keeps to the protocol, and many that do not.

use super::super::ServeError;
use super::wire::{self, OPTION, OPTION_REPLY, REQUEST, command, error, info, option, reply};
use super::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A small card that answers at once.
fn card(sector: u32) -> Model {
    let text = format!(
        "name = \"small\"\nabout = \"for tests\"\n[card]\ncapacity = \"64 MiB\"\nsector = \"{sector} B\"\n[nand]\npage = \"{sector} B\"\n\
         erase_block = \"4 MiB\"\n[ftl]\nkind = \"none\"\n"
    );
    Model::parse(&text, "small.toml").unwrap()
}

struct Here {
    server: Option<NbdServer>,
    path: PathBuf,
    _dir: tempfile::TempDir,
}

fn serve(sector: u32) -> Here {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("card.sock");
    let options = Options { realtime: false, ..Options::at(Address::Unix(path.clone())) };
    let server = Some(NbdServer::start(&card(sector), 1, &options).unwrap());
    Here { server, path, _dir: dir }
}

struct Client(UnixStream);

impl Client {
    /// Connected, greeted, flags sent.
    fn new(path: &PathBuf) -> Client {
        let mut s = UnixStream::connect(path).unwrap();
        s.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(wire::u64(&mut s).unwrap(), wire::GREETING);
        assert_eq!(wire::u64(&mut s).unwrap(), OPTION);
        assert_eq!(wire::u16(&mut s).unwrap(), 3);
        s.write_all(&3u32.to_be_bytes()).unwrap();
        Client(s)
    }

    fn option(&mut self, which: u32, data: &[u8]) {
        let mut all = OPTION.to_be_bytes().to_vec();
        all.extend(which.to_be_bytes());
        all.extend((data.len() as u32).to_be_bytes());
        all.extend(data);
        self.0.write_all(&all).unwrap();
    }

    fn answer(&mut self, which: u32) -> (u32, Vec<u8>) {
        assert_eq!(wire::u64(&mut self.0).unwrap(), OPTION_REPLY);
        assert_eq!(wire::u32(&mut self.0).unwrap(), which);
        let kind = wire::u32(&mut self.0).unwrap();
        let mut data = vec![0; wire::u32(&mut self.0).unwrap() as usize];
        self.0.read_exact(&mut data).unwrap();
        (kind, data)
    }

    /// In the transmission phase.
    fn go(path: &PathBuf) -> Client {
        let mut c = Client::new(path);
        c.option(option::GO, &asking("", &[info::BLOCK_SIZE]));
        while c.answer(option::GO).0 == reply::INFO {}
        c
    }

    fn send(&mut self, flags: u16, kind: u16, at: u64, len: u32, data: &[u8]) {
        let mut all = REQUEST.to_be_bytes().to_vec();
        all.extend(flags.to_be_bytes());
        all.extend(kind.to_be_bytes());
        all.extend((at ^ 0xabcd).to_be_bytes());
        all.extend(at.to_be_bytes());
        all.extend(len.to_be_bytes());
        all.extend(data);
        self.0.write_all(&all).unwrap();
    }

    /// The error code; checks magic and cookie.
    fn reply(&mut self, at: u64) -> u32 {
        assert_eq!(wire::u32(&mut self.0).unwrap(), wire::REPLY);
        let code = wire::u32(&mut self.0).unwrap();
        assert_eq!(wire::u64(&mut self.0).unwrap(), at ^ 0xabcd);
        code
    }

    fn read(&mut self, at: u64, len: u32) -> std::result::Result<Vec<u8>, u32> {
        self.send(0, command::READ, at, len, &[]);
        match self.reply(at) {
            0 => {
                let mut data = vec![0; len as usize];
                self.0.read_exact(&mut data).unwrap();
                Ok(data)
            }
            code => Err(code),
        }
    }

    fn write(&mut self, flags: u16, at: u64, data: &[u8]) -> u32 {
        self.send(flags, command::WRITE, at, data.len() as u32, data);
        self.reply(at)
    }

    fn gone(mut self) -> bool {
        matches!(self.0.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

fn asking(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((wanted.len() as u16).to_be_bytes());
    data.extend(wanted.iter().flat_map(|w| w.to_be_bytes()));
    data
}

#[test]
fn negotiation_lists_describes_and_refuses() {
    let h = serve(512);
    let mut c = Client::new(&h.path);
    c.option(option::LIST, &[]);
    assert_eq!(c.answer(option::LIST), (reply::SERVER, [&5u32.to_be_bytes()[..], b"small"].concat()));
    assert_eq!(c.answer(option::LIST), (reply::ACK, vec![]));
    c.option(option::LIST, b"x");
    assert_eq!(c.answer(option::LIST).0, reply::INVALID);
    for other in [0, 5, 8, 9, 10, 77, u32::MAX] {
        c.option(other, b"whatever");
        assert_eq!(c.answer(other).0, reply::UNSUPPORTED, "{other}");
    }
    c.option(option::INFO, &asking("another", &[]));
    assert_eq!(c.answer(option::INFO).0, reply::UNKNOWN);
    for malformed in [vec![], vec![0; 5], vec![0xff; 6], asking("small", &[1])[..10].to_vec(), [asking("", &[]), vec![0]].concat()] {
        c.option(option::INFO, &malformed);
        assert_eq!(c.answer(option::INFO).0, reply::INVALID, "{malformed:?}");
    }
    c.option(option::INFO, &vec![0; 100_000]);
    assert_eq!(c.answer(option::INFO).0, reply::TOO_BIG);
    c.option(option::INFO, &asking("small", &[info::NAME, info::DESCRIPTION, 99]));
    let mut got = vec![];
    loop {
        match c.answer(option::INFO) {
            (reply::INFO, data) => got.push(data),
            (kind, _) => break assert_eq!(kind, reply::ACK),
        }
    }
    let size = (64u64 << 20).to_be_bytes();
    assert_eq!(got[0], [&[0, 0][..], &size, &wire::EXPORT_FLAGS.to_be_bytes()].concat());
    assert_eq!(got[1], b"\0\x01small");
    assert_eq!(got[2], b"\0\x02for tests");
    assert_eq!(got[3], [&[0, 3][..], &512u32.to_be_bytes(), &4096u32.to_be_bytes(), &(32u32 << 20).to_be_bytes()].concat());
    c.option(option::ABORT, &[]);
    assert_eq!(c.answer(option::ABORT), (reply::ACK, vec![]));
    assert!(c.gone());
}

#[test]
fn the_old_way_in_works_with_and_without_zeroes() {
    let h = serve(512);
    for (flags, zeroes) in [(1u32, 124), (3, 0)] {
        let mut s = UnixStream::connect(&h.path).unwrap();
        let mut hello = [0; 18];
        s.read_exact(&mut hello).unwrap();
        s.write_all(&flags.to_be_bytes()).unwrap();
        let mut c = Client(s);
        c.option(option::EXPORT_NAME, b"small");
        assert_eq!(wire::u64(&mut c.0).unwrap(), 64 << 20);
        assert_eq!(wire::u16(&mut c.0).unwrap(), wire::EXPORT_FLAGS);
        let mut rest = vec![1; zeroes];
        c.0.read_exact(&mut rest).unwrap();
        assert!(rest.iter().all(|&b| b == 0));
        assert_eq!(c.read(0, 512), Ok(vec![0; 512]));
    }
    let mut c = Client::new(&h.path);
    c.option(option::EXPORT_NAME, b"another");
    assert!(c.gone());
}

#[test]
fn a_larger_sector_wants_a_client_that_knows() {
    let h = serve(4096);
    let mut c = Client::new(&h.path);
    c.option(option::GO, &asking("", &[]));
    assert_eq!(c.answer(option::GO).0, reply::BLOCK_SIZE_REQUIRED);
    c.option(option::GO, &asking("", &[info::BLOCK_SIZE]));
    while c.answer(option::GO).0 == reply::INFO {}
    assert_eq!(c.read(512, 4096), Err(error::INVALID));
    assert_eq!(c.read(4096, 4096), Ok(vec![0; 4096]));
    let mut c = Client::new(&h.path);
    c.option(option::EXPORT_NAME, b"");
    assert!(c.gone());
}

#[test]
fn commands_do_what_they_say() {
    let h = serve(512);
    let (mut a, mut b) = (Client::go(&h.path), Client::go(&h.path));
    let data: Vec<u8> = (0..4096u32).map(|i| (i % 251) as u8).collect();
    assert_eq!(a.write(0, 512, &data), 0);
    assert_eq!(b.read(512, 4096), Ok(data.clone()), "the clients share one card");
    assert_eq!(b.write(command::FUA, 8192, &data), 0);
    for (flags, kind) in [(0, command::TRIM), (command::FUA, command::WRITE_ZEROES), (command::NO_HOLE, command::WRITE_ZEROES)] {
        assert_eq!(a.write(0, 16384, &data), 0);
        a.send(flags, kind, 16384, 1024, &[]);
        assert_eq!(a.reply(16384), 0);
        assert_eq!(b.read(16384, 2048).unwrap(), [&[0; 1024][..], &data[1024..2048]].concat());
    }
    a.send(0, command::FLUSH, 0, 0, &[]);
    assert_eq!(a.reply(0), 0);
    let s = h.server.as_ref().unwrap().stats().done;
    // Flushes: the one asked for, and one for each FUA. Discards: trim, and zeroes that may be a hole.
    assert_eq!((s.flushes, s.discards, s.writes, s.failures), (3, 2, 6, 0));
}

#[test]
fn impossible_commands_are_answered_and_change_nothing() {
    let h = serve(512);
    let mut c = Client::go(&h.path);
    let end = 64u64 << 20;
    for (at, len, code) in [
        (end, 512, 22),
        (end - 512, 1024, 22),
        (u64::MAX - 511, 512, 22),
        (1, 512, 22),
        (0, 513, 22),
        (0, 0, 22),
        (0, (32 << 20) + 512, 75),
    ] {
        assert_eq!(c.read(at, len), Err(code), "{at} {len}");
    }
    for (at, len, code) in [(end, 512, 28), (end - 512, 1024, 28), (u64::MAX - 511, 512, 28), (1, 512, 22), (0, 513, 22)] {
        assert_eq!(c.write(0, at, &vec![1; len]), code, "{at} {len}");
        for kind in [command::TRIM, command::WRITE_ZEROES] {
            c.send(0, kind, at, len as u32, &[]);
            assert_eq!(c.reply(at), code, "{kind}: {at} {len}");
        }
        c.send(command::NO_HOLE, command::WRITE_ZEROES, at, len as u32, &[]);
        assert_eq!(c.reply(at), code);
    }
    c.send(0, command::FLUSH, 512, 512, &[]);
    assert_eq!(c.reply(512), error::INVALID);
    for (flags, kind) in [(0, 5), (0, 7), (0, 999), (2, command::READ), (16, command::WRITE_ZEROES), (0x8000, command::TRIM)] {
        c.send(flags, kind, 0, 512, &[]);
        assert_eq!(c.reply(0), error::INVALID, "{flags} {kind}");
    }
    assert_eq!(c.read(0, 512), Ok(vec![0; 512]));
    assert_eq!(h.server.as_ref().unwrap().stats().done.bytes_written, 0);
}

/// Whatever a client sends, and wherever it breaks off, the next one is served.
#[test]
fn nonsense_ends_its_own_connection_only() {
    let h = serve(512);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // A whole conversation as a client would send it.
    let mut good = 3u32.to_be_bytes().to_vec();
    for (which, data) in
        [(option::LIST, vec![]), (option::INFO, asking("small", &[1, 2, 3])), (option::GO, asking("", &[info::BLOCK_SIZE]))]
    {
        good.extend(OPTION.to_be_bytes());
        good.extend(which.to_be_bytes());
        good.extend((data.len() as u32).to_be_bytes());
        good.extend(data);
    }
    for (kind, len, payload) in
        [(command::WRITE, 1024u32, 1024), (command::READ, 4096, 0), (command::FLUSH, 0, 0), (command::DISCONNECT, 0, 0)]
    {
        good.extend(REQUEST.to_be_bytes());
        good.extend([0, 0]);
        good.extend(kind.to_be_bytes());
        good.extend([0; 16]);
        good.extend(len.to_be_bytes());
        good.extend(vec![7; payload]);
    }
    for round in 0..400 {
        let mut bytes = good.clone();
        match round % 4 {
            0 => bytes.truncate((random() % bytes.len() as u64) as usize),
            1 => bytes = (0..random() % 300).map(|_| random() as u8).collect(),
            _ => {
                for _ in 0..=random() % 6 {
                    let at = (random() % bytes.len() as u64) as usize;
                    bytes[at] = if random() % 2 == 0 { random() as u8 } else { [0, 1, 0x7f, 0xff][(random() % 4) as usize] };
                }
            }
        }
        let mut s = UnixStream::connect(&h.path).unwrap();
        // The server may close before everything is sent.
        let _ = s.write_all(&bytes);
        if round % 3 == 0 {
            // Others vanish without reading a single reply.
            let _ = s.shutdown(std::net::Shutdown::Write);
            let _ = s.read_to_end(&mut Vec::new());
        }
    }
    let mut c = Client::go(&h.path);
    assert_eq!(c.write(0, 4096, &[9; 512]), 0);
    assert_eq!(c.read(4096, 512), Ok(vec![9; 512]));
}

#[test]
fn more_clients_than_places_are_turned_away() {
    let h = serve(512);
    let all: Vec<Client> = (0..CLIENTS).map(|_| Client::go(&h.path)).collect();
    assert!(Client(UnixStream::connect(&h.path).unwrap()).gone());
    drop(all);
    // The places become free as the server notices.
    let again = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        UnixStream::connect(&h.path).is_ok_and(|mut s| s.read_exact(&mut [0; 18]).is_ok())
    });
    assert!(again);
}

/// Connections that are opened and left silent, or stop in the middle of a word, make room for others.
#[test]
fn half_open_connections_are_closed() {
    let h = serve(512);
    let silent: Vec<UnixStream> = (0..CLIENTS)
        .map(|i| {
            let mut s = UnixStream::connect(&h.path).unwrap();
            let word = [&3u32.to_be_bytes()[..], &OPTION.to_be_bytes(), &option::GO.to_be_bytes(), &[0; 3]].concat();
            s.write_all(&word[..i % word.len()]).unwrap();
            s
        })
        .collect();
    let welcome = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        UnixStream::connect(&h.path).is_ok_and(|mut s| s.read_exact(&mut [0; 18]).is_ok())
    });
    assert!(welcome, "silent clients keep the server to themselves");
    let mut c = Client::go(&h.path);
    drop(silent);
    // One that has chosen the card may be silent for as long as it likes.
    std::thread::sleep(2 * SILENT);
    assert_eq!(c.write(0, 0, &[5; 512]), 0);
}

/// A client that asks for much and reads nothing holds itself up and nobody else, and the server ends all the same.
#[test]
fn a_client_that_never_reads_stops_nobody() {
    let mut h = serve(512);
    let mut deaf: Vec<Client> = (0..4).map(|_| Client::go(&h.path)).collect();
    for c in &mut deaf {
        c.0.set_nonblocking(true).unwrap();
        let mut ask = REQUEST.to_be_bytes().to_vec();
        ask.extend([0, 0]);
        ask.extend(command::READ.to_be_bytes());
        ask.extend([0; 16]);
        ask.extend((1u32 << 20).to_be_bytes());
        while c.0.write(&ask).is_ok_and(|n| n == ask.len()) {}
    }
    let mut c = Client::go(&h.path);
    for i in 0..20 {
        assert_eq!(c.write(0, i * 4096, &[i as u8; 512]), 0);
        assert_eq!(c.read(i * 4096, 512), Ok(vec![i as u8; 512]));
    }
    h.server.take().unwrap().stop().unwrap();
    assert!(c.gone());
}

/// Lengths of 4 GiB cost neither memory nor the server.
#[test]
fn lengths_beyond_reason_are_refused_at_once() {
    let h = serve(512);
    for which in [option::EXPORT_NAME, option::GO, option::INFO, option::LIST, 77] {
        let mut c = Client::new(&h.path);
        let head = [&OPTION.to_be_bytes()[..], &which.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
        c.0.write_all(&head).unwrap();
        assert!(c.gone(), "{which}");
    }
    for kind in [command::WRITE, command::READ, command::TRIM, command::WRITE_ZEROES, 99] {
        let mut c = Client::go(&h.path);
        c.send(0, kind, 0, u32::MAX, &[]);
        let mut answer = [0; 16];
        // A write is closed: what would follow is not to be read.
        match c.0.read(&mut answer) {
            Ok(0) | Err(_) => assert_eq!(kind, command::WRITE),
            Ok(n) => assert!(n == 16 && answer[4..8] != [0; 4], "{kind} {n} {answer:?}"),
        }
    }
    let mut c = Client::go(&h.path);
    assert_eq!(c.read(0, 512), Ok(vec![0; 512]));
}

#[test]
fn one_server_a_socket_and_a_dead_one_makes_room() {
    let mut h = serve(512);
    let at = |path: &PathBuf| Options { realtime: false, ..Options::at(Address::Unix(path.clone())) };
    let error = |o: &Options| match NbdServer::start(&card(512), 1, o) {
        Err(ServeError::InTheWay(text)) => text,
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("it started"),
    };
    assert!(error(&at(&h.path)).contains("another server listens"));
    let client = Client::go(&h.path);
    h.server.take().unwrap().stop().unwrap();
    assert!(client.gone(), "clients are cut off");
    assert!(!h.path.exists(), "the socket goes with the server");
    // A socket nobody listens at.
    drop(std::os::unix::net::UnixListener::bind(&h.path).unwrap());
    assert!(h.path.exists());
    h.server = Some(NbdServer::start(&card(512), 1, &at(&h.path)).unwrap());
    assert_eq!(Client::go(&h.path).read(0, 512), Ok(vec![0; 512]));
    let file = h.path.with_extension("txt");
    std::fs::write(&file, "precious").unwrap();
    assert!(error(&at(&file)).contains("no socket"));
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

#[test]
fn addresses() {
    assert_eq!("unix:/a b".parse(), Ok(Address::Unix("/a b".into())));
    assert_eq!("tcp:[::1]:0".parse(), Ok(Address::Tcp("[::1]:0".into())));
    for bad in ["", "unix:", "tcp:", "tcp:host", "tcp::1", "tcp:host:99999", "http:x:1", "/tmp/x"] {
        assert!(bad.parse::<Address>().is_err(), "{bad}");
    }
    let start = |text: &str, allow_remote| {
        let options = Options { allow_remote, realtime: false, ..Options::at(text.parse().unwrap()) };
        NbdServer::start(&card(512), 1, &options)
    };
    for open in ["tcp:0.0.0.0:0", "tcp:[::]:0", "tcp:192.0.2.1:10809"] {
        assert!(matches!(start(open, false), Err(ServeError::Remote(_))), "{open}");
    }
    assert!(start("tcp:0.0.0.0:0", true).is_ok());
    let first = start("tcp:127.0.0.1:0", false).unwrap();
    let taken = first.uri().replace("nbd://", "tcp:");
    assert!(matches!(start(&taken, false), Err(ServeError::InTheWay(_))));
}

#[test]
fn a_socket_in_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { realtime: false, ..Options::at(Address::Unix(dir.path().join("no/such/dir.sock"))) };
    assert!(matches!(NbdServer::start(&card(512), 1, &options), Err(ServeError::System { .. })));
}
