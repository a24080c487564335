//! `nandscope completions SHELL` and `nandscope man`: made from the definition of the command line, so they cannot fall behind.

use super::Cli;
use clap::{Args, CommandFactory};
use std::io::Write;
use std::process::ExitCode;

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

pub fn completions(a: CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut text = vec![];
    clap_complete::generate(a.shell, &mut Cli::command(), "nandscope", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// One page: the program, then every command with its options.
pub fn man() -> anyhow::Result<ExitCode> {
    let mut text = vec![];
    let command = Cli::command();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
        let page = clap_mangen::Man::new(sub.clone());
        writeln!(text, ".SH \"{}\"", sub.get_name().to_uppercase())?;
        page.render_description_section(&mut text)?;
        page.render_options_section(&mut text)?;
    }
    std::io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}
