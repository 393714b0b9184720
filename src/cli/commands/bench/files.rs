//! Writing the result files of a run.
//!
//! Owns: which files were asked for in which form, and finding out before anything is started
//! whether they can be written.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::args::BenchArgs;
use super::targets;
use crate::bench::bench_result::{BenchResult, ExportFormat};
use crate::cli::context::CommandContext;
use crate::cli::output::{SpanStyle, StyledLine};
use crate::cli::save;
use crate::model::Error;

/// `--export`: a form and a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSpec {
    /// The form.
    pub form: ExportFormat,
    /// The file.
    pub path: PathBuf,
}

/// A value of `--export` whose format is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected FILE.csv, FILE.md, FILE.hgrm, or FORMAT=FILE with csv, md, hgrm or hyperfine; \
     toolhost's own JSON is --save FILE"
)]
pub struct ParseExportError;

impl FromStr for ExportSpec {
    type Err = ParseExportError;

    fn from_str(text: &str) -> Result<Self, ParseExportError> {
        let known = |word: &str| match word {
            "csv" => Some(ExportFormat::Csv),
            "md" | "markdown" => Some(ExportFormat::Markdown),
            "hgrm" => Some(ExportFormat::Hgrm),
            "hyperfine" => Some(ExportFormat::Hyperfine),
            _ => None,
        };
        if let Some((word, path)) = text.split_once('=')
            && let Some(form) = known(word)
            && !path.is_empty()
        {
            return Ok(Self { form, path: path.into() });
        }
        let path = PathBuf::from(text);
        match path.extension().and_then(|extension| known(extension.to_str()?)) {
            Some(form) => Ok(Self { form, path }),
            None => Err(ParseExportError),
        }
    }
}

/// Makes sure that every file can be written, before anything is started.
///
/// # Errors
/// A usage error that names the option and the reason; or both options that name one file.
pub(super) fn check(args: &BenchArgs, cwd: &Path) -> Result<(), Error> {
    let single = [
        ("--save", &args.save),
        ("--plot", &args.plot),
        ("--html", &args.html),
        ("--export-locust", &args.export_locust),
    ];
    let single = single.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?)));
    let exports = args.export.iter().map(|export| ("--export", &export.path));
    let all: Vec<(&str, PathBuf)> =
        single.chain(exports).map(|(option, path)| (option, cwd.join(path))).collect();
    for (index, (option, path)) in all.iter().enumerate() {
        if let Some((other, _)) = all.iter().take(index).find(|(_, earlier)| earlier == path) {
            let what = format!("{other} and {option} both name '{}'", path.display());
            return Err(Error::usage(what).with_hint("give each a file of its own"));
        }
        save::check_writable(path)
            .map_err(|error| Error::usage(format!("{option}: {}", error.message())))?;
    }
    let several = targets::count(args) > 1;
    if several && args.export.iter().any(|export| export.form == ExportFormat::Hgrm) {
        return Err(Error::usage(
            "--export: an hgrm file is of one tool, and this run has several",
        )
        .with_hint("csv, md and --save hold all of them"));
    }
    Ok(())
}

/// Writes every file.
///
/// # Errors
/// Of the first one that cannot be written; the others are written all the same.
pub(super) fn write(
    args: &BenchArgs,
    context: &CommandContext,
    account: &BenchResult,
) -> Result<(), Error> {
    let own = [
        (ExportFormat::Json, &args.save),
        (ExportFormat::Svg, &args.plot),
        (ExportFormat::Html, &args.html),
    ];
    let own = own.into_iter().filter_map(|(form, path)| Some((form, path.as_ref()?)));
    let exports = args.export.iter().map(|export| (export.form, &export.path));
    let mut outcome = Ok(());
    for (form, path) in own.chain(exports) {
        outcome = outcome.and(write_one(path, &account.render(form), context));
    }
    outcome
}

/// Writes one file and says so.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write_one(path: &Path, text: &str, context: &CommandContext) -> Result<(), Error> {
    save::write(&context.environment.cwd().join(path), text.as_bytes())?;
    context
        .output
        .note(&StyledLine::plain("saved ").then(SpanStyle::Name, path.display().to_string()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_named_or_follows_from_the_file() {
        let export = |text: &str| text.parse::<ExportSpec>().map(|export| export.form);
        assert_eq!(export("a.csv"), Ok(ExportFormat::Csv));
        assert_eq!(export("b.md"), Ok(ExportFormat::Markdown));
        assert_eq!(export("hyperfine=c.json"), Ok(ExportFormat::Hyperfine));
        assert_eq!(export("hgrm=a=b.txt"), Ok(ExportFormat::Hgrm));
        assert_eq!("hgrm=a=b.txt".parse::<ExportSpec>().unwrap().path, Path::new("a=b.txt"));
        for text in ["", "csv=", "a.json", "html=a.html", "a"] {
            assert!(export(text).is_err(), "{text}");
        }
    }
}
