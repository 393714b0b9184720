//! The arguments of benchmark calls, from the command line and from files.

use super::args::BenchArgs;
use crate::bench::arguments::read_lines;
use crate::bench::targets::ArgumentInput;
use crate::cli::commands::prelude::*;
use crate::cli::raw_arguments::RawArguments;
use crate::host::request::CallArguments;

pub(super) async fn read(
    args: &BenchArgs,
    context: &CommandContext,
) -> Result<ArgumentInput, Error> {
    let cwd = context.environment.cwd();
    if let Some(file) = &args.args_lines {
        return read_lines("--args-lines", &cwd.join(file)).map(ArgumentInput::Lines);
    }
    read_words(args.words.clone(), args.args.clone(), context).await.map(ArgumentInput::Single)
}

pub(super) async fn read_words(
    words: Vec<String>,
    whole: Option<String>,
    context: &CommandContext,
) -> Result<CallArguments, Error> {
    let sources = RawArguments { words, json_option: whole, cwd: context.environment.cwd() };
    sources.read().await
}
