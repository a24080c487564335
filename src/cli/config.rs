//! Defaults of one's own: a file that says what options are without being given. What allows something cannot stand in it.

use crate::device::nearest;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

/// Options that a person gives each time: they allow writing, destroying, publishing or being reached from elsewhere.
const NEVER: [&str; 13] = [
    "write",
    "consent",
    "no-undo",
    "force",
    "discard",
    "erase",
    "prepare",
    "with-serial",
    "overwrite-start",
    "system-disk",
    "allow-remote",
    "remove",
    "show-serial",
];

/// Where the file is: NANDSCOPE_CONFIG, else below XDG_CONFIG_HOME, else below ~/.config. An empty NANDSCOPE_CONFIG means none.
fn place() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("NANDSCOPE_CONFIG") {
        return (!path.is_empty()).then(|| path.into());
    }
    let home = || std::env::var_os("HOME").filter(|h| !h.is_empty()).map(|h| Path::new(&h).join(".config"));
    let base = std::env::var_os("XDG_CONFIG_HOME").filter(|d| !d.is_empty()).map(PathBuf::from).or_else(home)?;
    Some(base.join("nandscope/config.toml"))
}

/// The command line with the defaults of the file, where there is one.
///
/// # Errors
/// The file cannot be read or names what does not exist, in words.
pub fn with_defaults(command: clap::Command) -> Result<clap::Command, String> {
    let Some(path) = place() else { return Ok(command) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && std::env::var_os("NANDSCOPE_CONFIG").is_none() => return Ok(command),
        Err(e) => return Err(format!("cannot read {}: {e}", path.display())),
    };
    of_text(command, &text).map_err(|why| format!("{}: {why}", path.display()))
}

/// What is wrong with a text, and in which of its lines.
fn in_line(text: &str, e: &toml::de::Error) -> String {
    let line = e.span().and_then(|at| text.get(..at.start)).map(|before| before.lines().count().max(1));
    line.map_or_else(|| e.message().to_string(), |n| format!("line {n}: {}", e.message()))
}

fn of_text(mut command: clap::Command, text: &str) -> Result<clap::Command, String> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| in_line(text, &e))?;
    // What holds for all commands comes first, so that a command's own value replaces it.
    let (own, all): (Vec<_>, Vec<_>) = table.into_iter().partition(|(_, v)| v.is_table());
    for (key, value) in all {
        let names: Vec<String> = command.get_subcommands().filter(|c| has(c, &key)).map(|c| c.get_name().to_string()).collect();
        if names.is_empty() {
            let known: Vec<String> = command.get_subcommands().flat_map(options).collect();
            return Err(no_option("a command", &key, &known));
        }
        for name in names {
            command = set(command, &name, "the first lines, for all commands", &key, &value)?;
        }
    }
    for (name, options_of) in own {
        let Some(sub) = command.find_subcommand(&name) else {
            let near = nearest(&name, command.get_subcommands().map(clap::Command::get_name));
            return Err(format!("there is no command '{name}'{}", meant(near)));
        };
        let known = options(sub);
        for (key, value) in options_of.as_table().into_iter().flatten() {
            if !known.contains(key) {
                return Err(no_option(&name, key, &known));
            }
            command = set(command, &name, &format!("[{name}]"), key, value)?;
        }
    }
    Ok(command)
}

fn meant(near: Option<&str>) -> String {
    near.map_or(String::new(), |n| format!("; did you mean {n}?"))
}

fn no_option(whose: &str, key: &str, known: &[String]) -> String {
    format!("{whose} has no option '{key}'{}", meant(nearest(key, known.iter().map(String::as_str))))
}

/// Long options of a command and of those inside it.
fn options(c: &clap::Command) -> Vec<String> {
    let own = c.get_arguments().filter_map(|a| a.get_long()).map(str::to_string);
    own.chain(c.get_subcommands().flat_map(options)).collect()
}

fn has(c: &clap::Command, key: &str) -> bool {
    options(c).iter().any(|o| o == key)
}

/// The command with this default, in every command inside it that has the option; `place` is where the file says so.
fn set(command: clap::Command, name: &str, place: &str, key: &str, value: &toml::Value) -> Result<clap::Command, String> {
    if NEVER.contains(&key) {
        return Err(format!("'{key}' is given each time, on the command line"));
    }
    let text = match value {
        toml::Value::String(s) => s.clone(),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => value.to_string(),
        _ => return Err(format!("'{key}' in {place} is neither a text, a number, true nor false")),
    };
    fits(&command, name, place, key, &text)?;
    let text: &'static str = text.leak();
    Ok(command.mut_subcommand(name, |c| default(c, key, text)))
}

fn default(mut c: clap::Command, key: &str, text: &'static str) -> clap::Command {
    let id = c.get_arguments().find(|a| a.get_long() == Some(key)).map(|a| a.get_id().clone());
    if let Some(id) = id {
        c = c.mut_arg(id, |a| a.default_value(text));
    }
    let inside: Vec<String> = c.get_subcommands().map(|s| s.get_name().to_string()).collect();
    inside.iter().fold(c, |c, name| c.mut_subcommand(name, |s| default(s, key, text)))
}

/// Whether the option takes this value, tried as if it were given.
fn fits(command: &clap::Command, name: &str, place: &str, key: &str, text: &str) -> Result<(), String> {
    let sub = command.find_subcommand(name).ok_or("there is no such command")?;
    let owner = std::iter::once(sub).chain(sub.get_subcommands()).find(|c| c.get_arguments().any(|a| a.get_long() == Some(key)));
    let arg = owner.and_then(|c| c.get_arguments().find(|a| a.get_long() == Some(key))).ok_or("there is no such option")?;
    if !arg.get_action().takes_values() {
        return if text == "true" || text == "false" { Ok(()) } else { Err(format!("{key} = {text} in {place}: it is true or false")) };
    }
    // Alone: what it goes with or contradicts is another matter.
    let key: &'static str = key.to_string().leak();
    let tried = clap::Arg::new(key).long(key).value_name("VALUE").value_parser(arg.get_value_parser().clone());
    let alone = clap::Command::new("one").no_binary_name(true).arg(tried);
    match alone.try_get_matches_from([format!("--{key}={text}")]) {
        Err(e) if matches!(e.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) => {
            let all = e.to_string();
            let why = all.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string();
            Err(format!("{place} {why}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};

    fn line() -> clap::Command {
        let time = || Arg::new("time").long("time").value_parser(crate::units::parse_duration);
        let details = Arg::new("details").long("details").action(ArgAction::SetTrue).conflicts_with("quiet");
        let quiet = || Arg::new("quiet").long("quiet").short('q').action(ArgAction::SetTrue);
        let dir = Arg::new("dir").long("dir").global(true).conflicts_with("db");
        let db = Arg::new("db").long("db").global(true);
        let list = clap::Command::new("list").arg(Arg::new("limit").long("limit"));
        let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
        let serve = clap::Command::new("serve").args(["allow-remote", "overwrite-start", "system-disk"].map(flag));
        clap::Command::new("x")
            .subcommand(serve)
            .subcommand(clap::Command::new("probe").arg(time()).arg(details).arg(quiet()).arg(Arg::new("consent").long("consent")))
            .subcommand(clap::Command::new("ab").arg(time()).arg(quiet()))
            .subcommand(clap::Command::new("survey").arg(dir).arg(db).subcommand(list))
    }

    fn given(text: &str, words: &[&str], key: &str) -> String {
        let m = of_text(line(), text).unwrap().try_get_matches_from([&["x"], words].concat()).unwrap();
        let mut m = m.subcommand().unwrap().1;
        while let Some((_, inside)) = m.subcommand() {
            m = inside;
        }
        m.get_raw(key).map_or("-".into(), |v| v.map(|s| s.to_string_lossy()).collect())
    }

    #[test]
    fn the_nearest_value_counts() {
        let text = "time = '2m'\n[probe]\ntime = '5m'\ndetails = true\n[survey]\ndir = '/cards'\nlimit = 9\n";
        assert_eq!(given(text, &["ab"], "time"), "2m");
        assert_eq!(given(text, &["probe"], "time"), "5m");
        assert_eq!(given(text, &["probe", "--time", "9s"], "time"), "9s");
        assert_eq!(given("", &["probe"], "time"), "-");
        assert_eq!(given(text, &["survey", "list"], "limit"), "9");
        assert_eq!(given(text, &["survey", "--dir", "/x", "list"], "dir"), "/x");
        // A default contradicts nothing that is given.
        assert_eq!(given(text, &["probe", "-q"], "details"), "true");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            ("tmie = '2m'", "a command has no option 'tmie'; did you mean time?"),
            ("[prob]\n", "there is no command 'prob'; did you mean probe?"),
            ("[probe]\nlimit = 3", "probe has no option 'limit'"),
            ("[probe]\ntime = 'soon'", "[probe] invalid value 'soon' for '--time <VALUE>'"),
            ("[probe]\ndetails = 'x'", "it is true or false"),
            ("[probe]\nconsent = '1'", "'consent' is given each time"),
            ("[serve]\nallow-remote = true", "'allow-remote' is given each time"),
            ("overwrite-start = true", "'overwrite-start' is given each time"),
            ("[serve]\nsystem-disk = true", "'system-disk' is given each time"),
            ("[probe]\ntime = [1]", "neither a text"),
            ("time = ", "string values must be quoted"),
        ] {
            let why = of_text(line(), text).err().unwrap();
            assert!(why.contains(said), "{text}: {why}");
        }
    }
}
