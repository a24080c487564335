//! Clients that mean harm, over the loopback interface: garbage, lengths of 4 GiB, a hundred connections, half a handshake, reads that
//! nobody takes. The server keeps its memory, serves the next sound client, and ends when it is told to.

use crate::bed::*;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const OPTION: &[u8; 8] = b"IHAVEOPT";

fn connect(at: SocketAddr) -> TcpStream {
    let s = TcpStream::connect(at).unwrap();
    s.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    s.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    s
}

fn option(which: u32, length: u32, data: &[u8]) -> Vec<u8> {
    [&OPTION[..], &which.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

fn request(kind: u16, at: u64, length: u32) -> Vec<u8> {
    [&0x2560_9513u32.to_be_bytes()[..], &[0, 0], &kind.to_be_bytes(), &[7; 8], &at.to_be_bytes(), &length.to_be_bytes()].concat()
}

/// Through the handshake, so that requests can follow; `None` where there is no place for this client.
fn negotiated(at: SocketAddr) -> Option<TcpStream> {
    let mut s = connect(at);
    let mut hello = [0; 18];
    s.read_exact(&mut hello).ok()?;
    // NBD_FLAG_C_FIXED_NEWSTYLE and NO_ZEROES, then NBD_OPT_EXPORT_NAME with no name: the only export.
    s.write_all(&[&3u32.to_be_bytes()[..], &option(1, 0, &[])].concat()).ok()?;
    let mut rest = [0; 10];
    s.read_exact(&mut rest).ok()?;
    Some(s)
}

/// Writes and reads back 4 KiB.
fn served(at: SocketAddr) -> bool {
    let Some(mut s) = negotiated(at) else { return false };
    let data = noise(3, 4096);
    let mut answer = [0; 16];
    s.write_all(&[request(1, 8192, 4096), data.clone()].concat()).unwrap();
    s.read_exact(&mut answer).unwrap();
    assert_eq!(answer[4..8], [0; 4], "a write fails");
    s.write_all(&request(0, 8192, 4096)).unwrap();
    s.read_exact(&mut answer).unwrap();
    let mut back = vec![0; 4096];
    s.read_exact(&mut back).unwrap();
    assert!(back == data, "not what was written");
    true
}

/// Resident memory of the server in MiB.
fn memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn hostile_clients_over_loopback() {
    let _alone = alone();
    let server = Server::start(&["null", "--nbd", "tcp:127.0.0.1:0"]);
    let at: SocketAddr = server.place.trim_start_matches("nbd://").trim_end_matches('/').parse().unwrap();
    assert!(served(at));
    let before = memory(&server);
    // Garbage instead of the flags, in the first option, and behind the handshake; the old protocol of the web.
    for seed in 0..40 {
        let mut s = connect(at);
        let _ = s.write_all(&noise(seed, 1 + seed as usize * 97));
        if let Some(mut s) = negotiated(at) {
            let _ = s.write_all(&noise(seed + 1000, 1 + seed as usize * 211));
        }
        let _ = connect(at).write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    // Lengths of 4 GiB in every option and every request.
    for kind in 0..12u16 {
        let mut s = connect(at);
        let _ = s.write_all(&[&3u32.to_be_bytes()[..], &option(kind.into(), u32::MAX, &[])].concat());
        if let Some(mut s) = negotiated(at) {
            let _ = s.write_all(&request(kind, 0, u32::MAX));
            let _ = s.write_all(&request(kind, u64::MAX - 4095, 4096));
        }
    }
    assert!(until(10, || served(at)), "nobody is served any more");
    // A hundred connections: half of them say nothing or half a word, half ask for much and read nothing.
    let mut held = vec![];
    for i in 0..100usize {
        if i % 2 == 0 {
            let mut s = connect(at);
            let word = [&3u32.to_be_bytes()[..], &option(7, 6, &[0; 6])].concat();
            let _ = s.write_all(&word[..i % word.len()]);
            held.push(s);
        } else if let Some(mut s) = negotiated(at) {
            s.set_nonblocking(true).unwrap();
            while s.write(&request(0, 0, 1 << 20)).is_ok_and(|n| n == 28) {}
            held.push(s);
        }
    }
    let most = memory(&server);
    assert!(most < before + 400, "{before} MiB before, {most} with a hundred connections");
    // Those that chose no card lose their place soon; the next sound client is served.
    assert!(until(30, || served(at)), "silent clients keep the server to themselves");
    drop(held);
    assert!(until(10, || served(at)));
    server.stop();
}
