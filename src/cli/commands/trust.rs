//! `toolhost trust`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::context::{Context, Outcome, plural};
use crate::cli::output::{Format, Label, Line, Page};
use crate::cli::prompt;
use crate::config::spec::{Configuration, Trust, TrustRequest};
use crate::config::trust_store::Allowed;
use crate::host::approval::Approval;
use crate::model::Fault;

/// Allow what a project's files would start.
///
/// Shows every command that was not allowed yet, or changed since, and asks about each. What is
/// allowed is remembered by its content: a change asks again.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TrustArgs {
    /// Only entries of this file
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Allow everything that is shown without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Something else than asking.
    #[command(subcommand)]
    pub action: Option<TrustAction>,
}

/// What to do with what was allowed.
#[derive(Debug, Subcommand)]
pub enum TrustAction {
    /// Show what was allowed.
    List,
    /// Take back what was allowed.
    Revoke {
        /// An entry's name, or a file
        what: String,
    },
}

/// Runs the command.
///
/// # Errors
/// When something was not allowed, or the store cannot be used.
pub async fn run(args: &TrustArgs, context: &Context) -> Outcome {
    match &args.action {
        None => ask(args, context).await,
        Some(TrustAction::List) => list(context),
        Some(TrustAction::Revoke { what }) => {
            let gone = context.trust_store()?.revoke(what)?;
            if gone.is_empty() {
                return Err(Fault::usage(format!("nothing was allowed for '{what}'"))
                    .hint("'toolhost trust list' shows what was")
                    .into());
            }
            for entry in gone {
                let line = Line::plain("revoked ").then(Label::Name, &entry.name);
                let file = format!("  {}", entry.file.display());
                context.door.note(&line.then(Label::Dim, file));
            }
            Ok(())
        }
    }
}

async fn ask(args: &TrustArgs, context: &Context) -> Outcome {
    // `--trust` and its variable consent to this run, and here that is to remember.
    let consent = args.yes || context.trusts_all();
    let requests = open(&context.load_untrusting(), args.file.as_deref());
    if requests.is_empty() {
        context.door.note(&Line::plain("nothing to allow"));
        return Ok(());
    }
    if !consent && !prompt::is_possible() {
        let fault = Fault::denied(format!(
            "{} to allow, and no terminal to ask at",
            plural(requests.len(), "entry", "entries")
        ))
        .hint("run 'toolhost trust --yes' to allow exactly these");
        if context.door.speaks_json() {
            return Err(fault.details(requests.iter().flat_map(describe)).into());
        }
        // Not as evidence of the fault, of which only so much is shown: consent is to the whole.
        context.door.tell(&described(&requests));
        return Err(fault.into());
    }
    if consent && !context.door.speaks_json() {
        context.door.tell(&described(&requests));
    }
    let mut refused = Vec::new();
    for request in requests {
        let answer = if consent {
            Approval::Granted
        } else {
            prompt::ask_trust(Arc::clone(&context.door), request.clone()).await
        };
        if answer == Approval::Granted {
            context.allow(std::slice::from_ref(&request))?;
            let line = Line::of(Label::Good, "allowed ").then(Label::Name, &request.name);
            context.door.note(&line);
        } else {
            refused.push(request.name);
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    Err(Fault::denied(format!("not allowed: {}", refused.join(", "))).into())
}

fn list(context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml, Format::Names])?;
    let store = context.trust_store()?;
    let allowed = store.list();
    match format {
        Format::Json | Format::Yaml => {
            let list: Vec<Value> = allowed.iter().map(allowed_json).collect();
            context.door.value(format, &json!({ "allowed": list }))
        }
        Format::Names => {
            let mut page = Page::default();
            for entry in allowed {
                page.push(Line::plain(&entry.name));
            }
            context.door.page(&page)
        }
        _ => {
            context.door.page(&allowed_page(allowed))?;
            if allowed.is_empty() {
                context.door.note(&Line::plain("nothing was allowed yet"));
            }
            Ok(())
        }
    }
}

/// What was never allowed with its present content.
fn open(configuration: &Configuration, file: Option<&Path>) -> Vec<TrustRequest> {
    let states = configuration
        .servers
        .iter()
        .map(|server| &server.trust)
        .chain(configuration.tools.iter().map(|tool| &tool.trust));
    let mut requests: Vec<TrustRequest> = Vec::new();
    for state in states {
        if let Trust::Ask(request) = state
            && file.is_none_or(|file| same_file(file, &request.file))
            && !requests.iter().any(|earlier| earlier.key == request.key)
        {
            requests.push(request.clone());
        }
    }
    requests
}

fn same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    real(a) == real(b)
}

/// Everything that would be allowed, uncut.
fn described(requests: &[TrustRequest]) -> Page {
    let mut page = Page::default();
    for line in requests.iter().flat_map(describe) {
        page.push(Line::plain(line));
    }
    page
}

fn describe(request: &TrustRequest) -> Vec<String> {
    std::iter::once(format!("{} in {}:", request.name, request.file.display()))
        .chain(request.lines.iter().map(|line| format!("  {line}")))
        .collect()
}

fn allowed_page(allowed: &[Allowed]) -> Page {
    let mut page = Page::default();
    for entry in allowed {
        page.gap();
        page.push(
            Line::of(Label::Name, &entry.name)
                .then(Label::Dim, format!("  {}  {}", entry.file.display(), entry.when)),
        );
        for line in &entry.lines {
            page.push(Line::plain(line).indented(2));
        }
    }
    page
}

fn allowed_json(entry: &Allowed) -> Value {
    json!({
        "name": entry.name,
        "file": entry.file.display().to_string(),
        "key": entry.key,
        "when": entry.when,
        "lines": entry.lines,
    })
}
