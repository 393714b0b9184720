//! `stats --export`.

use std::path::Path;

use crate::cli::context::{Context, Outcome, plural};
use crate::cli::output::{Format, Line, json};
use crate::cli::save;
use crate::model::Fault;
use crate::stats::{Summary, export};

/// Writes a summary: a table when the name of the file ends in `.csv`, JSON otherwise; `-` is
/// standard output.
pub(super) fn run(file: &Path, summary: &Summary, context: &Context) -> Outcome {
    let door = &context.door;
    if file == Path::new("-") {
        return door.value(Format::Json, &export::json(summary));
    }
    save::check(file)?;
    let is_table = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let text =
        if is_table { export::csv(summary) } else { json::pretty(&export::json(summary)) + "\n" };
    save::replace(file, text.as_bytes())
        .map_err(|error| Fault::internal(format!("cannot write '{}': {error}", file.display())))?;
    let tools = plural(summary.tools.len(), "tool", "tools");
    door.note(&Line::plain(format!("{tools} written to {}", file.display())));
    Ok(())
}
