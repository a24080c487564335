//! What a target's name means: the one place that reads it, so that it means the same to every command.
//!
//! | form | is |
//! |---|---|
//! | `sim:NAME`, `sim:PATH.toml`, `PATH.toml`, `NAME` | a simulated card; with settings as `?seed=7&host=NAME&content` |
//! | `sim:random?seed=N`, `sim:unusual?seed=N`, `sim:random-today?seed=N` | a simulated card drawn at random; the seed is that of the draw and of the card |
//! | `exec:COMMAND ARGS`, `serial:PORT[@BAUD]` | a program or board that behaves like a card |
//! | a path, `sda` for `/dev/sda` | a block device, an image file, a directory |
//!
//! What exists as a file goes before what is a card's name.

use super::program;
use super::{DeviceError, Result};
use nandscope_sim::model::{Host, Profile};
use nandscope_sim::{Model, cards, random, today, unusual};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Settings of a simulated card behind `?`, and what stands for their values.
const SETTINGS: [(&str, Option<&str>); 3] = [("seed", Some("NUMBER")), ("host", Some("NAME")), ("content", None)];

/// What a name names.
#[derive(Debug)]
pub enum Target {
    Card(Box<SimCard>),
    /// `exec:` or `serial:`; nothing was started yet.
    Program(String),
    /// A block device, an image or a directory; it may be missing.
    Place(PathBuf),
}

/// A simulated card as it was named.
#[derive(Debug)]
pub struct SimCard {
    /// The name to show, with its seed and host: `sim:NAME?seed=1`.
    pub name: String,
    pub model: Model,
    /// The text of the model, as it was read.
    pub text: String,
    /// Of what is left to chance in the card.
    pub seed: u64,
    /// Keeps what is written, so that it reads back.
    pub content: bool,
}

enum Form<'a> {
    /// What stands behind `sim:`.
    Card(&'a str),
    Program,
    Place(PathBuf),
}

fn form(text: &str) -> Form<'_> {
    if program::is_name(text) {
        return Form::Program;
    }
    if let Some(rest) = text.strip_prefix("sim:") {
        return Form::Card(rest);
    }
    let (path, place) = (Path::new(text), text.split_once('?').map_or(text, |t| t.0));
    if place.ends_with(".toml") && !path.is_dir() {
        return Form::Card(text);
    }
    if path.exists() || text.contains('/') {
        return Form::Place(path.into());
    }
    if cards::text(place).is_some() {
        return Form::Card(text);
    }
    let node = Path::new("/dev").join(text);
    let is_block = fs::metadata(&node).is_ok_and(|m| m.file_type().is_block_device());
    Form::Place(if is_block { node } else { path.into() })
}

impl Target {
    /// Reads a name.
    ///
    /// # Errors
    /// `Open`: there is no such card or host, a model file that is wrong or missing, or an unknown setting; names what is near.
    pub fn of(text: &str) -> Result<Target> {
        Ok(match form(text) {
            Form::Card(rest) => Target::Card(Box::new(card(rest, None)?)),
            Form::Program => Target::Program(text.into()),
            Form::Place(path) => Target::Place(path),
        })
    }

    /// Reads the name of a simulated card, where nothing else is of use. `seed` is one given beside the name.
    ///
    /// # Errors
    /// As [`Target::of`]; `Open` where it names something else, or where two seeds are given.
    pub fn card(text: &str, seed: Option<u64>) -> Result<SimCard> {
        match form(text) {
            Form::Card(rest) => card(rest, seed),
            Form::Place(path) if !path.exists() => Err(missing(text)),
            Form::Program | Form::Place(_) => {
                let near = cards::text(text).map_or_else(String::new, |_| format!("; the built-in card is sim:{text}"));
                let why = format!("it is no simulated card{near}; 'nandscope cards' lists those, and a file of one is named PATH.toml");
                Err(DeviceError::Open { target: text.into(), why })
            }
        }
    }
}

/// The name under which a target is opened, with `sim:` in front where it is a simulated card.
pub fn target_name(text: &str) -> String {
    match form(text) {
        Form::Card(rest) => format!("sim:{rest}"),
        Form::Program => text.into(),
        Form::Place(path) => path.display().to_string(),
    }
}

/// The target with its content kept, where it is a simulated card: what is to be read back must be there.
pub fn with_content(text: &str) -> String {
    match form(text) {
        Form::Card(rest) if !settings(rest).1.any(|s| s == "content") => {
            format!("sim:{rest}{}content", if rest.contains('?') { '&' } else { '?' })
        }
        _ => target_name(text),
    }
}

/// Is it a simulated card by its name? A program may be one, too, and says so itself.
pub(super) fn is_card(text: &str) -> bool {
    matches!(form(text), Form::Card(_))
}

/// Nothing has this name.
pub fn missing(text: &str) -> DeviceError {
    if text.is_empty() {
        return DeviceError::Open { target: "''".into(), why: "the name is empty; 'nandscope list' shows the devices".into() };
    }
    let name = text.split_once('?').map_or(text, |t| t.0);
    let meant = near_card(name).map_or("; ".into(), |m| format!("; did you mean sim:{m}? "));
    let why = format!(
        "{}{meant}'nandscope list' shows the devices, 'nandscope cards' the simulated cards (sim:NAME)",
        std::io::Error::from(Errno::NOENT)
    );
    DeviceError::Open { target: text.into(), why }
}

fn near_card(name: &str) -> Option<&'static str> {
    nearest(name, cards::ALL.iter().map(|c| c.0))
}

fn settings(rest: &str) -> (&str, impl Iterator<Item = &str>) {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    (place, query.split('&').filter(|p| !p.is_empty()))
}

/// Reads what stands behind `sim:`.
fn card(rest: &str, beside: Option<u64>) -> Result<SimCard> {
    let (place, query) = settings(rest);
    let wrong = |why: String| {
        // Commands add it by themselves.
        let said: Vec<&str> = settings(rest).1.filter(|s| *s != "content").collect();
        let behind = if said.is_empty() { String::new() } else { format!("?{}", said.join("&")) };
        DeviceError::Open { target: format!("sim:{place}{behind}"), why }
    };
    let (mut seed, mut content, mut host) = (None, false, None);
    for part in query {
        match part.split_once('=') {
            Some(("host", _)) if host.is_some() => return Err(wrong("?host is given twice; give one".into())),
            Some(("seed", _)) if seed.is_some() => return Err(wrong("?seed is given twice; give one".into())),
            Some(("host", name)) => host = Some(profile(name).map_err(wrong)?),
            Some(("seed", n)) => seed = Some(n.parse().map_err(|_| wrong(format!("'{n}' is no seed; write for example ?seed=7")))?),
            None if part == "content" => content = true,
            _ => return Err(wrong(unknown(part))),
        }
    }
    if let (Some(a), Some(b)) = (seed, beside)
        && a != b
    {
        return Err(wrong(format!("?seed={a} and --seed {b} are two seeds; give one")));
    }
    let seed = seed.or(beside).unwrap_or(1);
    let drawn = match place {
        "random" => Some(random::card(seed)),
        "unusual" => Some(unusual::card(seed)),
        "random-today" => Some(today::card(seed)),
        _ => None,
    };
    let (text, file) = if let Some(m) = drawn {
        (m.to_toml(), format!("{place}.toml"))
    } else if place.ends_with(".toml") || place.contains('/') {
        let text = model_text(place.as_ref()).map_err(|e| wrong(format!("{e}; 'nandscope cards' lists the built-in cards")))?;
        (text, place.to_string())
    } else {
        (built_in(place).map_err(wrong)?.to_string(), format!("{place}.toml"))
    };
    let model = Model::parse(&text, &file).map_err(|e| wrong(e.to_string()))?;
    let (model, on) = match host {
        None => (model, String::new()),
        Some(p) => (Model { host: Host::of(p), ..model }, format!("&host={}", p.name())),
    };
    Ok(SimCard { name: format!("sim:{place}?seed={seed}{on}"), model, text, seed, content })
}

/// The text of a built-in card.
fn built_in(name: &str) -> std::result::Result<&'static str, String> {
    cards::text(name).ok_or_else(|| match near_card(name) {
        Some(m) => format!("there is no card '{name}'; did you mean sim:{m}? 'nandscope cards' lists all"),
        None => format!(
            "there is no card '{name}'; 'nandscope cards' lists the built-in ones, sim:random?seed=7 and sim:unusual?seed=7 are drawn at random, \
             and a file is named sim:PATH.toml"
        ),
    })
}

fn profile(name: &str) -> std::result::Result<Profile, String> {
    Profile::named(name).ok_or_else(|| {
        let meant = nearest(name, Profile::names()).map_or("; ".into(), |m| format!("; did you mean {m}? "));
        format!("there is no host '{name}'{meant}there are {}", Profile::names().collect::<Vec<_>>().join(", "))
    })
}

fn unknown(part: &str) -> String {
    let key = part.split_once('=').map_or(part, |p| p.0);
    let meant = nearest(key, SETTINGS.iter().map(|s| s.0)).map_or("; ".into(), |m| format!("; did you mean {m}? "));
    let shown = SETTINGS.map(|(k, v)| v.map_or(k.to_string(), |v| format!("{k}={v}")));
    let [others @ .., last] = &shown;
    format!("unknown setting '{part}'{meant}there are {} and {last}", others.join(", "))
}

/// The text of a card model in a file; it is short.
///
/// # Errors
/// It cannot be read, is no text, or is larger than 1 MiB.
pub fn model_text(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    const LONGEST: u64 = 1 << 20;
    let mut text = vec![];
    fs::File::open(path)?.take(LONGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(std::io::Error::other("it is larger than 1 MiB; a card model is a short text"));
    }
    String::from_utf8(text).map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not text; a card model is TOML"))
}

/// The name that is nearest to a misspelt one, where one is near: at most a fifth of its letters differ, and two at least may.
pub fn nearest<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| s.to_lowercase().replace('-', "_").chars().collect::<Vec<char>>();
    let wanted = plain(key);
    let names: Vec<&str> = names.collect();
    // The only one that begins so is meant.
    let mut begins = names.iter().filter(|n| wanted.len() >= 3 && plain(n).starts_with(&wanted));
    if let (Some(one), None) = (begins.next(), begins.next()) {
        return Some(one);
    }
    let best = names.into_iter().map(|n| (distance(&wanted, &plain(n)), n)).min()?;
    (best.0 <= (wanted.len() / 5).max(2) && best.0 < wanted.len().max(2) - 1).then_some(best.1)
}

/// Letters to change, add or take away, two neighbours that changed places counting as one (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut d: Vec<Vec<usize>> = vec![vec![0; b.len() + 1]; a.len() + 1];
    (0..=a.len()).for_each(|i| d[i][0] = i);
    (0..=b.len()).for_each(|j| d[0][j] = j);
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = d[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            d[i][j] = change.min(d[i - 1][j] + 1).min(d[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                d[i][j] = d[i][j].min(d[i - 2][j - 2] + 1);
            }
        }
    }
    d[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::{Machine, OpenOptions, is_simulated, open};
    use super::*;

    fn card_of(text: &str) -> SimCard {
        Target::card(text, None).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn every_form_of_a_card_is_the_same_card_wherever_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("my.toml");
        fs::write(&file, cards::text("null").unwrap()).unwrap();
        let path = file.to_str().unwrap();
        for name in ["null", "usb-stick", path] {
            for before in ["", "sim:"] {
                for (query, seed, host, content) in [
                    ("", 1, None, false),
                    ("?seed=7", 7, None, false),
                    ("?content", 1, None, true),
                    ("?host=avr-16mhz-spi", 1, Some("avr-16mhz-spi"), false),
                    ("?content&seed=9&host=avr-16mhz-spi", 9, Some("avr-16mhz-spi"), true),
                ] {
                    let text = format!("{before}{name}{query}");
                    let c = card_of(&text);
                    let on = host.map_or_else(String::new, |h| format!("&host={h}"));
                    assert_eq!((c.name.clone(), c.seed, c.content), (format!("sim:{name}?seed={seed}{on}"), seed, content), "{text}");
                    let opened = open(&text, &OpenOptions::default()).unwrap();
                    assert_eq!((&opened.id().path, opened.geometry().size), (&c.name, c.model.card.capacity), "{text}");
                    assert_eq!(opened.machine(), Machine::of(&c.model), "{text}");
                    assert!(host.is_none() || opened.machine().is_some_and(|m| Some(m.name) == host), "{text}");
                    assert!(is_simulated(&text).unwrap(), "{text}");
                    assert_eq!(target_name(&text), format!("sim:{name}{query}"));
                    assert_eq!(target_name(&target_name(&text)), target_name(&text));
                    let kept = card_of(&with_content(&text));
                    assert!(kept.content && kept.name == c.name, "{text}");
                    assert_eq!(with_content(&with_content(&text)), with_content(&text));
                    // A seed beside the name is the card's; two that differ are none.
                    let beside = Target::card(&text, Some(7));
                    match query.contains("seed=9") {
                        true => assert!(beside.unwrap_err().to_string().contains("two seeds")),
                        false => assert_eq!(beside.unwrap().seed, 7),
                    }
                }
            }
        }
        // A name that only looks like a setting is none.
        let odd = dir.path().join("content.toml");
        fs::write(&odd, cards::text("null").unwrap()).unwrap();
        assert!(card_of(&with_content(odd.to_str().unwrap())).content);
    }

    #[test]
    fn what_is_there_goes_before_a_name_and_what_is_no_card_stays_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        fs::create_dir(path("d.toml")).unwrap();
        for place in [path("d.toml"), path("card.img"), path("null"), "/dev/nosuch".into(), "no-such".into()] {
            assert!(matches!(Target::of(&place).unwrap(), Target::Place(p) if p == Path::new(&place)), "{place}");
            assert!(!is_simulated(&place).unwrap());
            assert_eq!((target_name(&place), with_content(&place)), (place.clone(), place));
        }
        for program in ["exec:./null.toml --size 1GiB", "serial:/dev/ttyACM0@9600", "exec:cat sim:null?content"] {
            assert!(matches!(Target::of(program).unwrap(), Target::Program(p) if p == program));
            assert_eq!((target_name(program), with_content(program)), (program.to_string(), program.to_string()));
            assert!(Target::card(program, None).unwrap_err().to_string().contains("no simulated card"));
        }
        assert!(Target::card(&path("d.toml"), None).unwrap_err().to_string().contains("PATH.toml"));
        assert!(Target::card("no-such", None).unwrap_err().to_string().contains("nandscope list"));
    }

    #[test]
    fn wrong_names_and_files_say_what_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("my.toml");
        fs::write(&file, "name = 7").unwrap();
        let path = file.to_str().unwrap();
        for (text, says) in [
            ("sim:no-such", "'nandscope cards' lists the built-in ones"),
            ("sim:no-such", "sim:random?seed=7"),
            ("sim:no-such", "sim:PATH.toml"),
            ("sim:usb-stik", "did you mean sim:usb-stick?"),
            ("usb-stik", "did you mean sim:usb-stick?"),
            ("usb-stik?seed=2", "did you mean sim:usb-stick?"),
            ("sim:null?seed=x", "?seed=7"),
            ("null?seed=-1", "?seed=7"),
            ("sim:null?speed=1", "seed=NUMBER, host=NAME and content"),
            ("sim:null?sead=1", "did you mean seed?"),
            ("null?contents", "did you mean content?"),
            ("sim:null?host=toaster", "there is no host 'toaster'; there are avr-16mhz-spi"),
            ("sim:null?host=avr-16mhz-spy", "did you mean avr-16mhz-spi?"),
            ("/no/such.toml", "nandscope cards"),
            (path, "my.toml"),
        ] {
            let alone = Target::card(text, None).unwrap_err().to_string();
            let opened = open(text, &OpenOptions::default()).err().expect(text).to_string();
            assert!(alone.contains(says), "{text}: {alone}");
            assert_eq!(alone, opened, "{text}");
        }
    }

    #[test]
    fn the_nearest_name() {
        for (wrong, meant) in [
            ("open_aus_linaer", "open_aus_linear"),
            ("eraseblock", "erase_block"),
            ("record-wirte-512-b-records", "record-write-512-b-records"),
            ("capacty", "capacity"),
            ("colour", ""),
            ("ab", ""),
        ] {
            let names = ["open_aus_linear", "open_aus_random", "erase_block", "capacity", "record-write-512-b-records", "id", "lot"];
            assert_eq!(nearest(wrong, names.into_iter()).unwrap_or(""), meant, "{wrong}");
        }
    }
}
