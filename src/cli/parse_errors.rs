//! Help, version and usage errors of the argument parser, in the program's own format.

use super::output::{CommandError, Output};
use crate::model::Error;
use crate::present::{Page, Role};

pub fn print_parse_error(error: &clap::Error, output: &Output) -> Result<(), CommandError> {
    let rendered = error.render().to_string();
    match error.kind() {
        clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion => {
            let mut page = Page::default();
            page.text(Role::Plain, 0, rendered.trim_end());
            output.page(&page)
        }
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            if !output.has_json_errors() {
                let mut page = Page::default();
                page.text(Role::Plain, 0, rendered.trim_end());
                page.blank_line();
                output.stderr_page(&page);
            }
            Err(Error::usage("no command was given").into())
        }
        _ => Err(usage_error(&rendered).into()),
    }
}

pub fn message(error: &clap::Error) -> String {
    usage_error(&error.render().to_string()).message().to_owned()
}

/// Converts the parser's text to an error: its first paragraph is the message, its tips are the
/// hint, its usage is a detail.
pub(super) fn usage_error(rendered: &str) -> Error {
    let text = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let lines = |paragraph: &str| -> Vec<String> {
        let lines = paragraph.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    let mut paragraphs = text.split("\n\n").map(lines);
    let message = paragraphs.next().unwrap_or_default().join(" ");
    let mut hints = Vec::new();
    let mut error = Error::usage(message.trim_end_matches('.'));
    for lines in paragraphs {
        let paragraph = lines.join(" ");
        if paragraph.starts_with("Usage: ") {
            let usages = lines.iter().map(|line| line.strip_prefix("Usage: ").unwrap_or(line));
            error = error.with_details(usages.map(|usage| format!("usage: {usage}")));
        } else if let Some(tip) = paragraph.strip_prefix("tip: ") {
            // The words after `--` are a server, not a value.
            let tips = tip.split(" tip: ").filter(|tip| !tip.starts_with("to pass '"));
            hints.extend(tips.map(str::to_owned));
        } else if let Some(values) = paragraph.strip_prefix('[') {
            error = error.with_detail(format!("[{values}"));
        }
    }
    if hints.is_empty() {
        hints.push("try --help".to_owned());
    }
    error.with_hint(hints.join("; "))
}
