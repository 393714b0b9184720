//! Checks of `doctor` for the machine, the files and the directories of this user.

use std::io::IsTerminal as _;

use super::{DoctorCheck, Severity};
use crate::cli::commands::prelude::*;
use crate::cli::output::settings;
use crate::config::spec::Configuration;
use crate::present::configuration::{count_diagnostics, diagnostic_counts};
use crate::util::{confine, units};

const LITTLE_SPACE: u64 = 100 << 20;

pub(super) fn checks(context: &CommandContext, configuration: &Configuration) -> Vec<DoctorCheck> {
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
