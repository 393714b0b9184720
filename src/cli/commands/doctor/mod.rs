//! `toolhost doctor`: diagnosing problems of the machine, the files and the servers.
//!
//! Checks of `doctor` for the machine, the files and the directories of this user.

use std::io::IsTerminal as _;

use super::config;
use crate::cli::commands::prelude::*;
use crate::cli::output::settings;
use crate::config::spec::Configuration;
use crate::model::ServerStatus;
use crate::present::configuration::{count_diagnostics, diagnostic_counts};
use crate::util::{confine, units};

mod server_programs;

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
    let mut checks = checks(context, &configuration);
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

const LITTLE_SPACE: u64 = 100 << 20;

fn checks(context: &CommandContext, configuration: &Configuration) -> Vec<DoctorCheck> {
    let mut checks = vec![
        DoctorCheck::new("toolhost", Severity::Ok, env!("CARGO_PKG_VERSION")),
        terminal(context),
        files(configuration),
        trust(context, configuration),
    ];
    checks.extend(stores(context, configuration));
    checks.push(sandbox());
    checks
}

fn terminal(context: &CommandContext) -> DoctorCheck {
    let environment = &*context.environment;
    let check = |severity, message: &str| DoctorCheck::new("terminal", severity, message);
    if settings::is_ascii_locale(environment) {
        return check(Severity::Warning, "the locale is not UTF-8, so only ASCII is drawn")
            .with_hint("export LANG=C.UTF-8");
    }
    if !context.output.is_terminal() || !std::io::stdin().is_terminal() {
        return check(Severity::Ok, "none; the console needs one, commands do not");
    }
    if settings::is_dumb(environment) {
        return check(Severity::Warning, "TERM is unset or dumb, so there is no console")
            .with_hint("export TERM=xterm-256color");
    }
    let colour = settings::wants_colour(context.global.rare.color, true, environment);
    check(Severity::Ok, if colour { "UTF-8, with colour" } else { "UTF-8, without colour" })
}

fn files(configuration: &Configuration) -> DoctorCheck {
    let entries = configuration.tools.len() + configuration.servers.len();
    let read: Vec<String> =
        configuration.files.iter().map(|file| file.path.display().to_string()).collect();
    let (errors, warnings) = count_diagnostics(configuration);
    let severity = match (errors, warnings) {
        (0, 0) => Severity::Ok,
        (0, _) => Severity::Warning,
        _ => Severity::Error,
    };
    let counts = diagnostic_counts(errors, warnings);
    let entries = plural(entries, "entry", "entries");
    let message = format!("{entries} of {}; {counts}", read.join(", "));
    let check = DoctorCheck::new("configuration", severity, message);
    if severity == Severity::Ok { check } else { check.with_hint("toolhost config check") }
}

fn trust(context: &CommandContext, configuration: &Configuration) -> DoctorCheck {
    let check = |severity, message: String| DoctorCheck::new("trust", severity, message);
    if let Err(error) = context.trust_store() {
        return check(Severity::Error, error.message().to_owned());
    }
    let Some(request) = &configuration.trust_request else {
        return check(Severity::Ok, "no untrusted entries".to_owned());
    };
    let count = plural(configuration.untrusted.len(), "entry waits", "entries wait");
    let message = format!("{count} for trust in the project {}", request.root.display());
    check(Severity::Warning, message).with_hint(request.command())
}

fn stores(context: &CommandContext, configuration: &Configuration) -> [DoctorCheck; 2] {
    let state = context.environment.state_dir();
    let records = [
        ("audit log", &configuration.audit, crate::audit::log::FILE),
        ("history", &configuration.history, crate::history::log::FILE),
    ];
    records.map(|(name, spec, file)| {
        if !spec.enabled {
            return DoctorCheck::new(name, Severity::Ok, "switched off");
        }
        match assembly::record_location(spec, file, state.as_deref()) {
            Some(place) => store(name, place.parent()),
            None => DoctorCheck::new(name, Severity::Warning, "there is no directory for it")
                .with_hint("set HOME, or a path for it in tools.yaml"),
        }
    })
}

fn store(name: &str, directory: &Path) -> DoctorCheck {
    let shown = directory.display();
    let existing = directory.ancestors().find(|path| path.exists()).unwrap_or(directory);
    if let Err(why) = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK) {
        let why = std::io::Error::from(why);
        let message = format!("cannot write to {shown}: {why}");
        return DoctorCheck::new(name, Severity::Error, message)
            .with_hint(format!("make {} writable", existing.display()));
    }
    let free = rustix::fs::statvfs(existing)
        .map(|file_system| file_system.f_bavail * file_system.f_frsize);
    match free {
        Ok(free) if free < LITTLE_SPACE => {
            let message = format!("{shown} has {} left", units::show_size(free));
            DoctorCheck::new(name, Severity::Warning, message).with_hint("free some space")
        }
        _ => DoctorCheck::new(name, Severity::Ok, shown.to_string()),
    }
}

fn sandbox() -> DoctorCheck {
    match confine::available() {
        Ok(level) => DoctorCheck::new("sandbox", Severity::Ok, level.as_str()),
        Err(error) => {
            let message = format!("{error}; entries that require one do not start");
            DoctorCheck::new("sandbox", Severity::Warning, message)
        }
    }
}
