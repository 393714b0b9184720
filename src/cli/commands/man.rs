//! `toolhost man`: printing or writing man pages.

use clap::{Command, CommandFactory as _};

use super::prelude::*;
use crate::cli::args::Cli;

/// Print a man page.
///
/// For example 'toolhost man call | man -l -'. With --dir, all pages are written, for packaging.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Command to document (default: toolhost itself)
    pub command: Vec<String>,
    /// Write the pages of all commands to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command",
          value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

pub async fn run(args: &ManArgs, context: &CommandContext) -> CommandResult {
    context.format(formats::TEXT)?;
    let mut grammar = Cli::command();
    if let Some(directory) = &args.dir {
        return write_all(grammar, directory, context);
    }
    grammar.build();
    let mut command = &grammar;
    for word in &args.command {
        let subcommand =
            command.find_subcommand(word).filter(|subcommand| !subcommand.is_hide_set());
        command = subcommand.ok_or_else(|| {
            Error::usage(format!("there is no command '{}'", args.command.join(" ")))
                .with_hint("'toolhost --help' lists them")
        })?;
    }
    let name = command.get_display_name().unwrap_or("toolhost").to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone().name(name))
        .render(&mut page)
        .map_err(|error| Error::internal(format!("cannot generate the page: {error}")))?;
    context.output.raw(&page)
}

fn write_all(grammar: Command, directory: &Path, context: &CommandContext) -> CommandResult {
    let failed = |why: std::io::Error| {
        Error::usage(format!("cannot write to {}: {why}", directory.display()))
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(grammar, directory).map_err(failed)?;
    context.output.note(done("wrote the pages to ", directory.display().to_string()));
    Ok(())
}
