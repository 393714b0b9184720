//! `toolhost break`: rules that stop calls for a person at the console.

use tokio_util::sync::CancellationToken;

use super::call::parse_timeout;
use super::prelude::*;
use crate::cli::{background_host, host_sockets};
use crate::host::breakpoints::{Breakpoint, BreakpointChange, BreakpointList, MAX_LIMIT};
use crate::host::link::{HostLink as _, HostQuery, LinkError};
use crate::model::HoldPoint;
use crate::serve::background::client::HostClient;
use crate::util::units::show_span;

/// Stop calls of agents and other clients until you decide about them in the console.
///
/// A call that goes through the background host and matches opens a window in the attached console:
/// let it go on, edit the arguments or the result, answer it yourself, or refuse it. Rules last as long
/// as the background host (`toolhost up`), and stop nothing while no console is attached.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::ROWS))]
#[command(after_help = EXAMPLES)]
pub struct BreakArgs {
    /// Tools whose calls stop: a full or bare name, or a pattern with * and ?
    #[arg(add = ArgValueCompleter::new(complete::tools), conflicts_with = "list")]
    pub pattern: Option<String>,
    /// Only stop calls of clients whose name begins so, such as claude
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// Stop before the call is sent, or with its result
    #[arg(long, value_parser = choice(STOPS), default_value = "call")]
    pub on: HoldPoint,
    /// How long a call waits for you
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_limit)]
    pub limit: Duration,
    /// What becomes of the call after that
    #[arg(long = "then", action = clap::ArgAction::Set, value_name = "THEN", value_parser = choice(AFTER_LIMIT),
          default_value = "refuse")]
    pub continues: bool,
    /// List the rules, which is the default
    #[arg(long)]
    pub list: bool,
    /// Remove the rules with this pattern, or --all
    #[arg(long, conflicts_with = "list")]
    pub remove: bool,
    /// With --remove, remove all rules
    #[arg(long, requires = "remove", conflicts_with = "pattern")]
    pub all: bool,
}

const EXAMPLES: &str = "\
Examples:
  toolhost break 'delete_*' --client claude
  toolhost break github-search --on result --limit 1m --then continue
  toolhost break --remove 'delete_*'";

const STOPS: &[Choice<HoldPoint>] = &[
    ("call", "Before it is sent", HoldPoint::Call),
    ("result", "With its result, before the client gets it", HoldPoint::Result),
];
/// Whether the call goes on when nobody decided about it.
const AFTER_LIMIT: &[Choice<bool>] =
    &[("refuse", "Refuse the call", false), ("continue", "Let it go on unchanged", true)];

fn parse_limit(text: &str) -> Result<Duration, Error> {
    parse_timeout(text).map(|limit| limit.min(MAX_LIMIT))
}

impl BreakArgs {
    fn change(&self) -> Result<BreakpointChange, Error> {
        Ok(match &self.pattern {
            Some(pattern) if self.remove => BreakpointChange::Remove(Some(pattern.clone())),
            Some(pattern) if pattern.is_empty() => {
                return Err(Error::usage("the pattern of a breakpoint is empty")
                    .with_hint("'*' stops the calls of all tools"));
            }
            Some(pattern) => BreakpointChange::Set(Breakpoint {
                pattern: pattern.clone(),
                client: self.client.clone(),
                on: self.on,
                limit: self.limit,
                continues: self.continues,
            }),
            None if self.all => BreakpointChange::Remove(None),
            None if self.remove => {
                return Err(Error::usage("--remove needs the pattern of a rule, or --all")
                    .with_hint("'toolhost break --list' shows the rules"));
            }
            None => BreakpointChange::Nothing,
        })
    }
}

pub async fn run(args: &BreakArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::ROWS)?;
    let change = args.change()?;
    let client = host(context).await?;
    let query = HostQuery::Breakpoints(change.clone());
    let answer =
        client.query(&query, &CancellationToken::new()).await.map_err(|error| match error {
            LinkError::Unsent => no_host(),
            LinkError::Lost(error) => error,
        })?;
    let list: Option<BreakpointList> = serde_json::from_str(&answer)
        .map_err(|error| Error::protocol(format!("the host's response is invalid: {error}")))?;
    let list = list.ok_or_else(no_host)?;
    let table = || match change {
        BreakpointChange::Nothing => {
            present::breakpoint::table(&list.rules, context.output.width())
        }
        _ => Page::default(),
    };
    if context.output.report(format, &BreakpointsJson::from(&list), table)? {
        report(&change, &list, context);
    }
    match &change {
        BreakpointChange::Remove(Some(pattern)) if list.removed == 0 => {
            Err(Error::usage(format!("no breakpoint has the pattern '{pattern}'"))
                .with_hint("'toolhost break --list' shows the rules")
                .into())
        }
        _ => Ok(()),
    }
}

fn report(change: &BreakpointChange, list: &BreakpointList, context: &CommandContext) {
    match change {
        BreakpointChange::Nothing if list.rules.is_empty() => {
            context.output.note("no breakpoint is set");
        }
        BreakpointChange::Set(rule) => {
            let of = rule.client.as_ref().map(|client| format!(" of {client}")).unwrap_or_default();
            let stop = match rule.on {
                HoldPoint::Call => "before they are sent",
                HoldPoint::Result => "with their result",
            };
            let then = if rule.continues { "go on" } else { "are refused" };
            let (tools, limit) = (&rule.pattern, show_span(rule.limit));
            let what = format!(": calls{of} to {tools} stop {stop}; after {limit} they {then}");
            context.output.note(done("set", "").then(Role::Plain, what));
        }
        BreakpointChange::Remove(_) if list.removed > 0 => {
            let removed = plural(list.removed, "breakpoint", "breakpoints");
            context.output.note(done("removed ", "").then(Role::Plain, removed));
        }
        BreakpointChange::Nothing | BreakpointChange::Remove(_) => {}
    }
    let is_removal = matches!(change, BreakpointChange::Remove(_));
    if list.consoles == 0 && !list.rules.is_empty() && !is_removal {
        context
            .output
            .warn("no console is attached, so nothing stops: run 'toolhost' in another terminal");
    }
}

async fn host(context: &CommandContext) -> Result<HostClient, Error> {
    let directory = background_host::require_directory(context)?;
    let identity = directory.key().and_then(|key| context.host_identity(&key));
    let socket = directory.socket(&identity.ok_or_else(no_host)?);
    let front_end = host_sockets::unattended();
    HostClient::connect(&socket, "toolhost break", front_end).await.ok_or_else(no_host)
}

fn no_host() -> Error {
    Error::unreachable("no background host is running for this configuration")
        .with_hint("'toolhost up' starts one; breakpoints last as long as it runs")
}

shape! {
    /// The rules of a background host that stop calls.
    pub BreakpointsJson<'a> of list: &'a BreakpointList {
        /// All rules, in their order: of those about a call the first counts.
        breakpoints: Vec<BreakpointJson<'a>> = list.rules.iter().map(Into::into).collect(),
        /// How many rules were removed.
        removed: usize = list.removed,
        /// How many consoles are attached; without one nothing stops.
        consoles: usize = list.consoles,
    }
}

shape! {
    /// A rule that stops calls.
    pub BreakpointJson<'a> of rule: &'a Breakpoint {
        /// The pattern of the names of tools.
        pattern: &'a str = &rule.pattern,
        /// How the names of clients begin; null for all.
        client: Option<&'a str> = rule.client.as_deref(),
        /// Where it stops a call.
        on: HoldPoint = rule.on,
        /// How long a call waits.
        limit_s: f64 = rule.limit.as_secs_f64(),
        /// What becomes of the call after that: `refuse` or `continue`.
        then: &'static str = present::breakpoint::then(rule),
    }
}
