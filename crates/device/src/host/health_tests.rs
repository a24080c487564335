use super::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::fs;
use std::path::PathBuf;

/// A block of `base` with numbers put in, big-endian.
fn block(start: &[u8], base: u8, be: &[(usize, usize, u64)]) -> Vec<u8> {
    let mut out = vec![base; BLOCK];
    out[..start.len()].copy_from_slice(start);
    for &(at, n, v) in be {
        out[at..at + n].copy_from_slice(&v.to_be_bytes()[8 - n..]);
    }
    out
}

fn longsys(life: u32) -> Vec<u8> {
    let mut words = [0u32; 15];
    words[0] = 0x9632_5870;
    words[1] = 1;
    words[3] = 56;
    (words[4], words[5], words[6], words[8], words[9], words[10], words[11]) = (12, 3, 1 << 20, 40, 2500, 122_000_000, life);
    (words[13], words[14]) = (3000, 9);
    words[2] = [0, 1, 3, 4, 5, 7, 6, 8, 9, 10].into_iter().fold(0, |x, w: usize| x ^ words[w]);
    let mut out: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    out.resize(BLOCK, 0);
    out
}

fn phison(be: &[(usize, usize, u64)]) -> Vec<u8> {
    let usual = [(14, 1, 1), (64, 2, 9756), (80, 4, 1380), (96, 2, 9997), (98, 2, 1), (100, 2, 1), (102, 2, 5), (112, 4, 55)];
    let all: Vec<_> = usual.iter().chain(be).copied().collect();
    block(&[0x98, 0x3c, 0x98, 0xb3, 0x76, 0x72, 8, 0x0e, 0], 0, &all)
}

#[test]
fn what_no_card_means_is_refused() {
    assert_eq!(decode(&[0xff; 512]), Err(Refused::Alike(0xff)));
    assert_eq!(decode(&[0; 512]), Err(Refused::Alike(0)));
    assert_eq!(decode(&[0; 511]), Err(Refused::Length(511)));
    let mut boot = block(&[0xeb, 0x3c, 0x90], 0, &[]);
    boot[510..].copy_from_slice(&[0x55, 0xaa]);
    assert_eq!(decode(&boot), Err(Refused::BootRecord));
    // Code of a boot loader without its mark begins with the id of no maker of flash.
    assert_eq!(decode(&block(&[0xfa, 0xb8, 0, 0x10], 7, &[])), Err(Refused::Unknown(0xfa, 0xb8)));
    assert!(decode(&block(b"DS", b'9', &[])).is_err(), "the 99th month");
}

#[test]
fn a_check_word_that_does_not_fit_is_refused() {
    let good = longsys(97);
    let b = decode(&good).unwrap();
    assert_eq!((b.life_left_percent, b.grown_bad_blocks, b.host_bytes, b.mean_erases), (Some(97.0), Some(3), Some(512 << 20), Some(2.5)));
    for at in [1, 9, 17, 25, 33, 41] {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert!(decode(&bad).is_err(), "byte {at}");
    }
    assert!(!matches!(decode(&good), Ok(b) if b.layout == "sandisk-wd"));
}

#[test]
fn a_life_above_100_percent_is_not_life_left() {
    let b = decode(&phison(&[(96, 2, 45_300), (80, 4, 13_807_590)])).unwrap();
    assert_eq!(b.life_left_percent, None);
    assert!(b.doubts[0].contains("453.00 %"), "{:?}", b.doubts);
    assert_eq!(decode(&phison(&[])).unwrap().life_left_percent, Some(99.97));
}

#[test]
fn blocks_without_a_signature_must_be_plausible() {
    for (what, be) in [("least above mean", (100, 2, 9)), ("good blocks", (64, 2, 10_001)), ("chips", (14, 1, 0)), ("maker", (0, 1, 0x33))]
    {
        assert!(decode(&phison(&[be])).is_err(), "{what}");
    }
    // Rubbish is never read as a block without a signature: 3 relations and two bytes would have to fit by chance.
    let mut rng = Pcg64Mcg::new(7);
    let taken = (0..20_000).filter(|_| decode(&random(&mut rng)).is_ok()).count();
    assert_eq!(taken, 0);
}

fn random(rng: &mut Pcg64Mcg) -> Vec<u8> {
    let mut out = vec![0; BLOCK];
    rng.fill_bytes(&mut out);
    out
}

#[test]
fn two_readings_of_one_card_agree() {
    let (a, b) = (decode(&phison(&[])).unwrap(), decode(&phison(&[(80, 4, 1400), (112, 4, 56)])).unwrap());
    assert_eq!(agree(&a, &b), Ok(()));
    assert_eq!(agree(&b, &a), Err(Refused::Changing("erases in all".into())), "counters do not fall");
    let other = decode(&phison(&[(3, 1, 0x11)])).unwrap();
    assert_eq!(agree(&a, &other), Err(Refused::Changing("flash id".into())));
}

#[test]
fn one_question_by_the_maker_and_none_for_the_others() {
    assert_eq!(query_for(0x03, 0x5344).unwrap().argument, 1);
    assert_eq!(query_for(0x74, 0x4a60).unwrap().argument, 0x1100_05f9);
    let kingston = query_for(0x41, 0x3432).unwrap();
    assert_eq!((kingston.first_write, kingston.argument), (Some(0x10), 0x21));
    // A Transcend card that answers in ADATA's layout is read by its signature.
    let adata = block(&[0x09, 0x41], 0, &[(70, 1, 88)]);
    assert_eq!(decode_answer(&adata, &query_for(0x74, 0x4a60).unwrap()).unwrap().life_left_percent, Some(88.0));
    // A block without a signature counts only where one without was asked for.
    assert!(decode_answer(&phison(&[]), &query_for(0x03, 0x5344).unwrap()).is_err());
    assert!(decode_answer(&phison(&[]), &kingston).is_ok());
    assert!(query_for(0x1b, 0x534d).is_none(), "Samsung's do not answer");
}

/// Published readings: every known byte, the others at random.
#[test]
fn published_blocks() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published/cmd56");
    let Ok(all) = fs::read_dir(&dir) else {
        println!("skipped: no published health blocks beside the repository");
        return;
    };
    let mut read = 0;
    for path in all.map(|e| e.unwrap().path()).filter(|p| p.to_string_lossy().ends_with(".json")) {
        let card: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let id = card["id"].as_str().unwrap();
        let Ok(hex) = fs::read_to_string(dir.join(format!("{id}.known.hex"))) else { continue };
        let bytes: Vec<Option<u8>> = hex
            .lines()
            .filter(|l| !l.starts_with('#'))
            .flat_map(str::split_whitespace)
            .map(|w| u8::from_str_radix(w, 16).ok())
            .chain(std::iter::repeat(None))
            .take(BLOCK)
            .collect();
        for seed in 0..40 {
            let mut filled = random(&mut Pcg64Mcg::new(seed));
            // The sums over dies are known as sums only.
            let decoded = &card["decoded"];
            for (from, key) in [(32, "factory_bad_blocks"), (184, "later_bad_blocks")] {
                if card["layout"] == "phison-two-step" && bytes[from].is_none() {
                    filled[from..from + 32].fill(0);
                    filled[from + seed as usize % 32] = decoded[key].as_u64().unwrap_or(0) as u8;
                }
            }
            for (to, known) in filled.iter_mut().zip(&bytes) {
                *to = known.unwrap_or(*to);
            }
            let got = decode(&filled);
            if !card["expect"].as_str().unwrap().starts_with("decode") {
                assert!(!matches!(&got, Ok(b) if b.layout != card["layout"]), "{id}: {got:?}");
                assert!(got.is_err(), "{id}: {got:?}");
                continue;
            }
            let got = got.unwrap_or_else(|e| panic!("{id}: {e}"));
            assert_eq!(got.layout, card["layout"].as_str().unwrap(), "{id}");
            assert_eq!(got.doubts.is_empty(), !card["expect"].as_str().unwrap().contains("flag"), "{id}: {:?}", got.doubts);
            for (key, want) in decoded.as_object().unwrap() {
                // Printed by the program of its time from bytes that nobody published.
                if id.ends_with("transcend-230i-32") && ["controller", "power_ups_field", "write_crc_errors"].contains(&key.as_str()) {
                    continue;
                }
                let value = got.get(key).unwrap_or_else(|| panic!("{id}: no {key}"));
                let same = match (value, want) {
                    (Value::Number(n), w) if w.is_u64() => Some(*n) == w.as_u64(),
                    (Value::Text(t), w) if w.is_string() => Some(t.as_str()) == w.as_str(),
                    // Two bytes of a version, as numbers.
                    (Value::Text(t), serde_json::Value::Array(v)) => {
                        *t == v.iter().map(|b| format!("{:02x}", b.as_u64().unwrap())).collect::<String>()
                    }
                    _ => false,
                };
                assert!(same, "{id}: {key} is {value:?}, published {want}");
            }
        }
        read += 1;
    }
    assert!(read >= 10, "{read} published blocks");
}
