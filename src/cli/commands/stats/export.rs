//! `stats --export`: writing statistics to a file.

use std::path::Path;

use crate::cli::context::{CommandContext, CommandResult};
use crate::cli::output::plural;
use crate::cli::output::{Format, StyledLine};
use crate::cli::save;
use crate::model::Error;
use crate::stats::{Summary, export};
use crate::util::json;

/// Writes a summary: as CSV if the file name ends in `.csv`, otherwise as JSON; `-` is stdout.
pub(super) fn run(file: &Path, summary: &Summary, context: &CommandContext) -> CommandResult {
    let output = &context.output;
    if file == Path::new("-") {
        return output.value(Format::Json, &export::json(summary));
    }
    save::check(file)?;
    let is_table = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let text =
        if is_table { export::csv(summary) } else { json::pretty(&export::json(summary)) + "\n" };
    save::replace(file, text.as_bytes())
        .map_err(|error| Error::internal(format!("cannot write '{}': {error}", file.display())))?;
    let tools = plural(summary.tools.len(), "tool", "tools");
    output.note(&StyledLine::plain(format!("{tools} written to {}", file.display())));
    Ok(())
}
