//! Options that would do nothing beside the rest of a command line: whoever gives one expects something of it, so it is an error.

use super::misuse;
use clap::ArgMatches;
use clap::parser::ValueSource;

/// # Errors
/// An option was given that has no effect here; what to do.
pub fn none(command: &clap::Command, matches: &ArgMatches) -> anyhow::Result<()> {
    let id = |long: &str| command.get_arguments().find(|a| a.get_long() == Some(long)).map(|a| a.get_id().as_str());
    let given = |long: &str| id(long).is_some_and(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    let value = |long: &str| matches.try_get_raw(id(long)?).ok()??.next();
    let dash = |long: &str| given(long) && value(long).is_none_or(|v| v == "-");
    let shown = dash("json") || given("format") && value("output").is_none_or(|v| v == "-");
    if command.get_name() != "uflip" && given("only") && shown {
        return Err(misuse("--only prints one value to standard output, where --json or --format goes as well: give those a file"));
    }
    let of_samples = given("samples") && value("samples").is_some_and(|v| v == "none") && command.get_name() == "report";
    let holds = given("json") || given("html") || value("format").is_some_and(|v| v == "json");
    if of_samples && !holds {
        return Err(misuse("--samples acts on a file that may hold samples: add --json F, or --html F where there is one"));
    }
    Ok(())
}
