//! Work that goes on while data are sent, and merges of cards that know of whole erase blocks only whether they hold anything.

use nandscope_sim::{Card, Data, Event, Model, Op, Request};

fn model(host: &str, card: &str, nand: &str, ftl: &str) -> Model {
    let text = format!(
        "name = \"hidden\"\n[host]\ncommand = \"100 us\"\nrate = \"20 MB/s\"\n{host}\n[card]\ncapacity = \"64 MiB\"\n{card}\n\
         [nand]\npage = \"16 KiB\"\nerase_block = \"64 KiB\"\n{nand}\n[ftl]\n{ftl}\n"
    );
    Model::parse(&text, "hidden").unwrap()
}

fn took(card: &mut Card, op: Op, at: u64, len: u64) -> u64 {
    let done = card.submit(0, Request { op, at, len, data: Data::Other }).unwrap();
    done.done - done.start
}

const KIB: u64 = 1024;

/// The flush waits for what the data did not hide: work that begins with the write takes its own time, or that of command and data where they take longer.
#[test]
fn a_flush_waits_for_what_is_left_of_a_write() {
    let of = |program: &str| {
        let nand = format!("program = \"{program}\"");
        model("flushes = true", "overlap = true\nbehind = \"250 ms\"\nflush = \"50 us\"", &nand, "kind = \"none\"")
    };
    // 100 us for the command and 819.2 us for 16 KiB at 20 MB/s.
    assert_eq!(took(&mut Card::new(&of("2 ms"), 1), Op::Write, 0, 16 * KIB), 2_050_000);
    assert_eq!(took(&mut Card::new(&of("500 us"), 1), Op::Write, 0, 16 * KIB), 969_200);
    // Where nothing is hidden all is waited for.
    let m = model("flushes = true", "flush = \"50 us\"", "program = \"2 ms\"", "kind = \"none\"");
    assert_eq!(took(&mut Card::new(&m, 1), Op::Write, 0, 16 * KIB), 2_969_200);
}

/// One unit is sensed while the one before it is on the bus, and waits for it.
#[test]
fn units_are_sensed_one_ahead() {
    let read = |sense: &str, how: &str| {
        let m = model("", "", &format!("sense = \"{sense}\"\n{how}"), "kind = \"none\"");
        took(&mut Card::new(&m, 1), Op::Read, 0, 48 * KIB)
    };
    let ahead = "pipelined = true\none_ahead = true";
    assert_eq!(read("300 us", ahead), 100_000 + 300_000 + 3 * 819_200);
    assert_eq!(read("1 ms", ahead), 100_000 + 3 * 1_000_000 + 819_200);
    assert_eq!(read("300 us", ""), 100_000 + 3 * (300_000 + 819_200));
}

/// What was merged counts as held whole where a card knows no more of it; nothing is copied of an erase block that holds nothing.
#[test]
fn merges_of_whole_erase_blocks() {
    let copied = |copies: &str| {
        let ftl = format!("kind = \"block-map\"\nopen_linear = 1\ncopies = \"{copies}\"");
        let mut card = Card::new(&model("", "state = \"empty\"", "program = \"1 ms\"\ncopy = \"1 ms\"", &ftl), 1).account();
        let mut write = |at| {
            took(&mut card, Op::Write, at, 16 * KIB);
            card.last_events().unwrap().get(Event::Copy)
        };
        [0, 64 * KIB, 0, 64 * KIB].map(&mut write)
    };
    assert_eq!(copied("held"), [0, 0, 0, 0]);
    assert_eq!(copied("blocks"), [0, 0, 0, 3]);
    assert_eq!(copied("all"), [0, 3, 3, 3]);
}
