//! The files that a run writes.
//!
//! Owns: which files were asked for in which form, and finding out before anything is started
//! whether they can be written.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::args::BenchArgs;
use super::targets;
use crate::bench::environment::BenchEnvironment;
use crate::bench::export;
use crate::bench::findings::Findings;
use crate::bench::json as account;
use crate::bench::report::Report;
use crate::cli::context::Context;
use crate::cli::output::json;
use crate::cli::output::{Label, Line};
use crate::cli::save;
use crate::model::Fault;

/// A form of the account of a run that other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One row for each tool and figure.
    Csv,
    /// A table for a page.
    Markdown,
    /// The percentile text of HdrHistogram.
    Hgrm,
    /// JSON as hyperfine writes it.
    Hyperfine,
}

/// `--export`: a form and a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The form.
    pub format: ExportFormat,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |word: &str| match word {
            "csv" => Some(ExportFormat::Csv),
            "md" | "markdown" => Some(ExportFormat::Markdown),
            "hgrm" => Some(ExportFormat::Hgrm),
            "hyperfine" => Some(ExportFormat::Hyperfine),
            _ => None,
        };
        if let Some((word, path)) = text.split_once('=')
            && let Some(format) = known(word)
            && !path.is_empty()
        {
            return Ok(Self { format, path: path.into() });
        }
        let path = PathBuf::from(text);
        match path.extension().and_then(|extension| known(extension.to_str()?)) {
            Some(format) => Ok(Self { format, path }),
            None => {
                Err("expected FILE.csv, FILE.md, FILE.hgrm, or FORMAT=FILE with csv, md, hgrm \
                         or hyperfine; toolhost's own JSON is --save FILE"
                    .to_owned())
            }
        }
    }
}

/// Makes sure that every file can be written, before anything is started.
///
/// # Errors
/// A usage fault that names the option and the reason; or both options that name one file.
pub(super) fn check(args: &BenchArgs, cwd: &Path) -> Result<(), Fault> {
    let single =
        [("--save", &args.save), ("--plot", &args.plot), ("--export-locust", &args.export_locust)];
    let single = single.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?)));
    let exports = args.export.iter().map(|export| ("--export", &export.path));
    let all: Vec<(&str, PathBuf)> =
        single.chain(exports).map(|(option, path)| (option, cwd.join(path))).collect();
    for (index, (option, path)) in all.iter().enumerate() {
        if let Some((other, _)) = all.iter().take(index).find(|(_, earlier)| earlier == path) {
            let what = format!("{other} and {option} both name '{}'", path.display());
            return Err(Fault::usage(what).hint("give each a file of its own"));
        }
        save::check_writable(path)
            .map_err(|fault| Fault::usage(format!("{option}: {}", fault.message())))?;
    }
    let several = targets::count(args) > 1;
    if several && args.export.iter().any(|export| export.format == ExportFormat::Hgrm) {
        return Err(Fault::usage(
            "--export: an hgrm file is of one tool, and this run has several",
        )
        .hint("csv, md and --save hold all of them"));
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
    let mut texts: Vec<(&Path, String)> = Vec::new();
    if let Some(path) = &args.save {
        texts.push((path, json::pretty(&account::report(report, environment, findings)) + "\n"));
    }
    if let Some(path) = &args.plot {
        texts.push((path, export::svg::svg(report, None)));
    }
    for Export { format, path } in &args.export {
        let text = match format {
            ExportFormat::Csv => export::csv::csv(report),
            ExportFormat::Markdown => export::markdown::markdown(report, &findings.comparisons),
            ExportFormat::Hyperfine => json::pretty(&export::hyperfine::hyperfine(report)) + "\n",
            ExportFormat::Hgrm => {
                let first = report.targets.first();
                first.map(|target| export::hgrm::hgrm(&target.response)).unwrap_or_default()
            }
        };
        texts.push((path, text));
    }
    let mut outcome = Ok(());
    for (path, text) in texts {
        outcome = outcome.and(write_one(path, &text, context));
    }
    outcome
}

/// Writes one file and says so.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write_one(path: &Path, text: &str, context: &Context) -> Result<(), Fault> {
    save::write(&context.environment.cwd().join(path), text.as_bytes())?;
    context.door.note(&Line::plain("saved ").then(Label::Name, path.display().to_string()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_named_or_follows_from_the_file() {
        let export = |text: &str| text.parse::<Export>().map(|export| export.format);
        assert_eq!(export("a.csv"), Ok(ExportFormat::Csv));
        assert_eq!(export("b.md"), Ok(ExportFormat::Markdown));
        assert_eq!(export("hyperfine=c.json"), Ok(ExportFormat::Hyperfine));
        assert_eq!(export("hgrm=a=b.txt"), Ok(ExportFormat::Hgrm));
        assert_eq!("hgrm=a=b.txt".parse::<Export>().unwrap().path, Path::new("a=b.txt"));
        for text in ["", "csv=", "a.json", "html=a.html", "a"] {
            assert!(export(text).is_err(), "{text}");
        }
    }
}
