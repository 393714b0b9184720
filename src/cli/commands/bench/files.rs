//! Writing the result files of a run.

use super::args::BenchArgs;
use crate::bench::bench_result::{BenchResult, ExportFormat};
use crate::cli::commands::prelude::*;
use crate::cli::save;

/// Makes sure that every file can be written, before anything is started.
pub(super) fn check(args: &BenchArgs, cwd: &Path) -> Result<(), Error> {
    let single =
        [("--save", &args.save), ("--html", &args.html), ("--export-locust", &args.export_locust)];
    let single = single.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?)));
    let exports = args.export.iter().map(|export| ("--export", &export.path));
    let all: Vec<(&str, PathBuf)> =
        single.chain(exports).map(|(option, path)| (option, cwd.join(path))).collect();
    for (index, (option, path)) in all.iter().enumerate() {
        if let Some((other, _)) = all.iter().take(index).find(|(_, earlier)| earlier == path) {
            let what = format!("{other} and {option} both name '{}'", path.display());
            return Err(Error::usage(what).with_hint("use a different file for each"));
        }
        save::check_writable(path)
            .map_err(|error| Error::usage(format!("{option}: {}", error.message())))?;
    }
    let page = args.html.as_ref().filter(|page| page.extension().is_some_and(|e| e == "svg"));
    match page {
        Some(page) => {
            let what = format!("'{}' is to be an HTML page, not an SVG picture", page.display());
            Err(Error::usage(what).with_hint("name it .html: the plots are in the page"))
        }
        None => Ok(()),
    }
}

pub(super) fn write(
    args: &BenchArgs,
    context: &CommandContext,
    result: &BenchResult,
) -> Result<(), Error> {
    let own = [(ExportFormat::Json, &args.save), (ExportFormat::Html, &args.html)];
    let own = own.into_iter().filter_map(|(form, path)| Some((form, path.as_ref()?)));
    let exports = args.export.iter().map(|export| (export.form, &export.path));
    let mut outcome = Ok(());
    for (form, path) in own.chain(exports) {
        outcome = outcome.and(write_one(path, &result.render(form), context));
    }
    outcome
}

pub(super) fn write_one(path: &Path, text: &str, context: &CommandContext) -> Result<(), Error> {
    save::write(&context.environment.cwd().join(path), text.as_bytes())?;
    context.output.note(Line::plain("saved ").then(Role::Name, path.display().to_string()));
    Ok(())
}
