//! The files that a run writes.
//!
//! Owns: which files were asked for in which form, and finding out before anything is started
//! whether they can be written.

use std::path::{Path, PathBuf};

use super::args::BenchArgs;
use crate::bench::environment::BenchEnvironment;
use crate::bench::findings::Findings;
use crate::bench::json as account;
use crate::bench::report::Report;
use crate::cli::context::Context;
use crate::cli::output::json;
use crate::cli::output::{Label, Line};
use crate::cli::save;
use crate::model::Fault;

/// Every file that will be written, with its option.
fn all(args: &BenchArgs, cwd: &Path) -> Vec<(&'static str, PathBuf)> {
    args.save.iter().map(|path| ("--save", cwd.join(path))).collect()
}

/// Makes sure that every file can be written, before anything is started.
///
/// # Errors
/// A usage fault that names the option and the reason; or both options that name one file.
pub(super) fn check(args: &BenchArgs, cwd: &Path) -> Result<(), Fault> {
    let all = all(args, cwd);
    for (index, (option, path)) in all.iter().enumerate() {
        if let Some((other, _)) = all.iter().take(index).find(|(_, earlier)| earlier == path) {
            let what = format!("{other} and {option} both name '{}'", path.display());
            return Err(Fault::usage(what).hint("give each a file of its own"));
        }
        save::check_writable(path)
            .map_err(|fault| Fault::usage(format!("{option}: {}", fault.message())))?;
    }
    Ok(())
}

/// Writes every file.
///
/// # Errors
/// Of the first one that cannot be written; the others are written all the same.
pub(super) fn write(
    args: &BenchArgs,
    context: &Context,
    report: &Report,
    environment: &BenchEnvironment,
    findings: &Findings,
) -> Result<(), Fault> {
    let mut outcome = Ok(());
    let cwd = context.environment.cwd();
    if let Some(path) = &args.save {
        let text = json::pretty(&account::report(report, environment, findings)) + "\n";
        let written = save::write(&cwd.join(path), text.as_bytes());
        if written.is_ok() {
            let line = Line::plain("saved ").then(Label::Name, path.display().to_string());
            context.door.note(&line);
        }
        outcome = outcome.and(written);
    }
    outcome
}
