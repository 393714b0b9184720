//! `toolhost doctor`: diagnosing problems, without starting anything.

mod machine;
mod server_programs;

use clap::Args;

use crate::assembly;
use crate::cli::context::{CommandContext, CommandResult};
use crate::cli::formats;
use crate::cli::json::doctor::{DoctorCheckJson, DoctorJson};
use crate::cli::output::{Format, SpanStyle, StyledLine, StyledPage, plural};
use crate::model::Error;

/// Diagnose problems with the environment, files and servers.
///
/// The terminal, the files, trust, the places where records are kept, the sandbox, and for each
/// server whether its program is found and which variables of yours it is not given. Nothing is
/// started or contacted. With findings the exit code is 11.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct DoctorArgs {}

/// The severity of one finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Ok,
    Warning,
    Error,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    fn style(self) -> SpanStyle {
        match self {
            Self::Ok => SpanStyle::Success,
            Self::Warning => SpanStyle::Warning,
            Self::Error => SpanStyle::Error,
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DoctorCheck {
    name: String,
    severity: Severity,
    message: String,
    hint: Option<String>,
}

impl DoctorCheck {
    fn new(name: impl Into<String>, severity: Severity, message: impl Into<String>) -> Self {
        Self { name: name.into(), severity, message: message.into(), hint: None }
    }

    fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Runs the command.
///
/// # Errors
/// If there are findings, after everything was printed.
pub fn run(_args: &DoctorArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let (configuration, masker) = assembly::load(&context.load_request(), &*context.environment);
    context.output.set_masker(masker.clone());
    let mut checks = machine::checks(context, &configuration);
    for server in &configuration.servers {
        checks.extend(server_programs::checks(server, &*context.environment));
    }
    for check in &mut checks {
        check.message = masker.text(&check.message);
        check.hint = check.hint.take().map(|hint| masker.text(&hint));
    }
    match format {
        Format::Text => context.output.page(&page(&checks))?,
        _ => context.output.value(format, &json(&checks))?,
    }
    match checks.iter().filter(|check| check.severity > Severity::Ok).count() {
        0 => Ok(()),
        count => Err(Error::partial(plural(count, "finding", "findings")).into()),
    }
}

fn page(checks: &[DoctorCheck]) -> StyledPage {
    let mut page = StyledPage::default();
    for check in checks {
        let mut line = StyledLine::styled(check.severity.style(), check.severity.as_str());
        line.pad_to(9);
        page.push(
            line.then(SpanStyle::Name, &check.name)
                .then(SpanStyle::Plain, format!(": {}", check.message)),
        );
        if let Some(hint) = &check.hint {
            page.push(StyledLine::styled(SpanStyle::Dim, format!("hint: {hint}")).indented(9));
        }
    }
    page
}

fn json(checks: &[DoctorCheck]) -> DoctorJson<'_> {
    let checks = checks.iter().map(|check| DoctorCheckJson {
        name: &check.name,
        status: check.severity.as_str(),
        message: &check.message,
        hint: check.hint.as_deref(),
    });
    DoctorJson { version: env!("CARGO_PKG_VERSION"), checks: checks.collect() }
}
