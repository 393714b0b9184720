//! `toolhost up`: starting a background host.

use super::call::{ParseOptionError, parse_timeout};
use super::prelude::*;
use crate::cli::background_host::{self, HostOptions};
use crate::cli::host_sockets::start;
use crate::cli::json::background::StartedHostJson;
use crate::util::units;

/// Start a background host that keeps servers connected.
///
/// Commands with the same configuration use its connections instead of starting servers themselves.
/// The host starts a server when the first call needs it. It asks no questions: what is not trusted
/// is not started. It exits when no call was made for the time of --idle.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct UpArgs {
    /// Exit after this time without a call, such as 10m or 2h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_idle)]
    pub idle: Duration,
    /// Stay in the foreground, for a service manager
    #[arg(long)]
    pub foreground: bool,
    /// Leave the session of the process that started it, and tell that process when it listens
    #[arg(long, hide = true, requires = "foreground")]
    pub detached: bool,
}

fn parse_idle(text: &str) -> Result<Duration, ParseOptionError> {
    parse_timeout(text).map_err(|error| match error {
        ParseOptionError::NoTime => ParseOptionError::NoIdleTime,
        other => other,
    })
}

pub async fn run(args: &UpArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    if args.foreground {
        let options = HostOptions { idle: args.idle, is_detached: args.detached };
        return background_host::run(options, context).await;
    }
    let environment = context.environment.as_ref();
    let directory = background_host::require_directory(context)?;
    let identity = context.require_host_identity(&directory.make_key()?)?;
    let arguments = context.global.host_arguments();
    let started = start::start(&arguments, environment, &directory, &identity, args.idle).await?;
    let value = StartedHostJson::new(started.is_new, &started.status);
    if !context.output.report(format, &value, Page::default)? {
        return Ok(());
    }
    let state = if started.is_new { "started" } else { "already running" };
    let line = Line::styled(Role::Success, state)
        .then(Role::Plain, format!(" (pid {}) for ", started.status.pid))
        .then(Role::Name, started.status.directory.display().to_string());
    context.output.note(line);
    let limit = started.status.idle_limit;
    if limit != args.idle {
        let limit = units::show_span(limit);
        context.output.warn(&format!(
            "it stops after {limit} without a call, as set at its start; to change that, run \
             'toolhost down' first"
        ));
    }
    Ok(())
}
