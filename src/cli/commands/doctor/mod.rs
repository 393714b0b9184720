//! `toolhost doctor`: diagnosing problems of the machine, the files and the servers.

mod machine;
mod server_programs;

use super::config;
use crate::cli::commands::prelude::*;
use crate::config::spec::Configuration;
use crate::model::ServerStatus;

/// Diagnose problems with the environment, files and servers.
///
/// The terminal, the files, trust, the places where records are kept, the sandbox, and for each
/// server whether its program is found, which variables of yours it is not given, and whether it
/// responds: trusted servers are started or contacted, all at once. With an error the exit code is
/// 11; warnings do not change it.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct DoctorArgs {}

/// Runs the command.
///
/// # Errors
/// If there are findings, after everything was printed.
pub async fn run(_args: &DoctorArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let (mut configuration, masker) =
        assembly::load(&context.load_request(), &*context.environment);
    context.output.set_masker(masker.clone());
    let assembly = context.build();
    if let Ok(assembly) = &assembly {
        configuration.diagnostics = config::diagnostics(assembly).await;
    }
    let mut checks = machine::checks(context, &configuration);
    checks.extend(servers(assembly, context, &configuration).await);
    for check in &mut checks {
        check.message = masker.text(&check.message);
        check.hint = check.hint.take().map(|hint| masker.text(&hint));
        check.details.iter_mut().for_each(|line| *line = masker.text(line));
    }
    let value = DoctorJson { version: env!("CARGO_PKG_VERSION"), checks: &checks };
    context.output.report(format, &value, || page(&checks))?;
    match checks.iter().filter(|check| check.severity == Severity::Error).count() {
        0 => Ok(()),
        count => Err(Error::partial(plural(count, "error", "errors")).into()),
    }
}

/// What is known of the servers without them, and how they respond. Untrusted ones are not
/// contacted, and no question is asked: the check of the trust reports them.
async fn servers(
    assembly: Result<Assembly, Error>,
    context: &CommandContext,
    configuration: &Configuration,
) -> Vec<DoctorCheck> {
    let statuses = match (configuration.servers.is_empty(), assembly) {
        (true, _) => Vec::new(),
        (false, Ok(assembly)) => assembly.host.check_servers(&[]).await,
        (false, Err(error)) => {
            return vec![DoctorCheck::new("servers", Severity::Error, error.message())];
        }
    };
    let mut checks = Vec::new();
    for server in &configuration.servers {
        let programs = server_programs::checks(server, &*context.environment);
        let is_missing = programs.iter().any(|check| check.severity == Severity::Error);
        checks.extend(programs);
        let status = statuses.iter().find(|status| status.name == server.name && !is_missing);
        checks.extend(status.map(response));
    }
    checks
}

fn response(status: &ServerStatus) -> DoctorCheck {
    let name = format!("server {}", status.name);
    let Some(error) = status.state.error() else {
        let tools = plural(status.tools.unwrap_or_default(), "tool", "tools");
        return DoctorCheck::new(name, Severity::Ok, format!("responds, with {tools}"));
    };
    DoctorCheck {
        hint: error.hint().map(str::to_owned),
        details: error.details().to_vec(),
        ..DoctorCheck::new(name, Severity::Error, error.message())
    }
}

fn style(severity: Severity) -> Role {
    match severity {
        Severity::Ok => Role::Success,
        Severity::Warning => Role::Warning,
        Severity::Error => Role::Error,
    }
}

fn page(checks: &[DoctorCheck]) -> Page {
    let mut page = Page::default();
    for check in checks {
        let mut line = Line::styled(style(check.severity), <&str>::from(check.severity));
        line.pad_to(9);
        page.push(
            line.then(Role::Name, &check.name).then(Role::Plain, format!(": {}", check.message)),
        );
        for detail in &check.details {
            page.push(Line::plain(detail).indented(9));
        }
        if let Some(hint) = &check.hint {
            page.push(Line::styled(Role::Dim, format!("hint: {hint}")).indented(9));
        }
    }
    page
}

/// The checks that were made, and their results.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorJson<'a> {
    /// The version of toolhost.
    pub version: &'a str,
    /// The checks, in the order they were made.
    pub checks: &'a [DoctorCheck],
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorCheck {
    /// What was checked, such as `terminal` or `server github`.
    pub name: String,
    /// `ok`, `warning` or `error`.
    #[serde(rename = "status")]
    #[schemars(with = "String")]
    pub severity: Severity,
    /// What was found.
    pub message: String,
    /// How to fix the problem, if any.
    pub hint: Option<String>,
    /// What a failed server wrote, and other evidence.
    pub details: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Severity {
    Ok,
    Warning,
    Error,
}

impl DoctorCheck {
    pub fn new(name: impl Into<String>, severity: Severity, message: impl Into<String>) -> Self {
        let (name, message) = (name.into(), message.into());
        Self { name, severity, message, hint: None, details: Vec::new() }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
