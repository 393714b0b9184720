//! Writing the result files of a run.

use super::args::BenchArgs;
use crate::bench::bench_result::{BenchResult, ExportFormat};
use crate::cli::commands::prelude::*;
use crate::cli::save;

/// The files to write: the option that names each, and the form of the report in it.
fn files(args: &BenchArgs) -> Vec<(&'static str, &PathBuf, Option<ExportFormat>)> {
    let single = [
        ("--save", &args.save, Some(ExportFormat::Json)),
        ("--html", &args.html, Some(ExportFormat::Html)),
        ("--export-locust", &args.export_locust, None),
    ];
    let single =
        single.into_iter().filter_map(|(option, path, form)| Some((option, path.as_ref()?, form)));
    let exports = args.export.iter().map(|export| ("--export", &export.path, Some(export.form)));
    single.chain(exports).collect()
}

/// Makes sure that every file can be written, before anything is started.
pub(super) fn check(args: &BenchArgs, cwd: &Path) -> Result<(), Error> {
    let mut earlier: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path, _) in files(args) {
        let path = cwd.join(path);
        if let Some((other, _)) = earlier.iter().find(|(_, other)| *other == path) {
            let what = format!("{other} and {option} both name '{}'", path.display());
            return Err(Error::usage(what).with_hint("use a different file for each"));
        }
        save::check_writable(&path)
            .map_err(|error| Error::usage(format!("{option}: {}", error.message())))?;
        earlier.push((option, path));
    }
    let is_picture = |page: &&PathBuf| page.extension().is_some_and(|e| e == "svg");
    if let Some(page) = args.html.as_ref().filter(is_picture) {
        let what = format!("'{}' is to be an HTML page, not an SVG picture", page.display());
        return Err(Error::usage(what).with_hint("name it .html: the plots are in the page"));
    }
    Ok(())
}

pub(super) fn write(
    args: &BenchArgs,
    context: &CommandContext,
    result: &BenchResult,
) -> Result<(), Error> {
    let mut outcome = Ok(());
    for (_, path, form) in files(args) {
        let written = form.map(|form| write_one(path, &result.render(form), context));
        outcome = outcome.and(written.unwrap_or(Ok(())));
    }
    outcome
}

pub(super) fn write_one(path: &Path, text: &str, context: &CommandContext) -> Result<(), Error> {
    save::write(&context.environment.cwd().join(path), text.as_bytes())?;
    context.output.note(Line::plain("saved ").then(Role::Name, path.display().to_string()));
    Ok(())
}
