//! `toolhost trust`: reviewing and trusting a project.

use super::prelude::*;
use crate::cli::host_sockets;
use crate::config::consent::{EntryRecord, ProjectRecord, TrustRequest};

/// Review what a project's files would do, and trust them.
///
/// A project is trusted as a whole and by content: what its entries start, contact, read and write,
/// and the code they run. After a change you are asked again and shown the difference.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(arg = formats::option(formats::REPORT))]
pub struct TrustArgs {
    /// Directory of the project (default: the current one)
    #[arg(value_hint = clap::ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
    /// Trust the project without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Trust the project as its author: its code may change without asking again
    #[arg(long)]
    pub author: bool,
    /// A subcommand.
    #[command(subcommand)]
    pub action: Option<TrustAction>,
}

/// What to do with trusted projects.
#[derive(Debug, Subcommand)]
pub enum TrustAction {
    /// List trusted projects.
    #[command(arg = formats::option(formats::WORDS))]
    List,
    /// Revoke the trust in a project.
    Revoke {
        /// Directory of the project, or one above several (default: the current one)
        #[arg(value_hint = clap::ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
}

pub async fn run(args: &TrustArgs, context: &CommandContext) -> CommandResult {
    let outcome = match &args.action {
        None => ask(args, context).await,
        Some(TrustAction::List) => list(context),
        Some(TrustAction::Revoke { directory }) => revoke(directory.as_deref(), context),
    };
    host_sockets::recheck_hosts(context.environment.as_ref()).await;
    outcome
}

async fn ask(args: &TrustArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    // `--trust` and its variable consent to this run; here that means storing the trust.
    let consent = args.yes || context.trusts_all();
    let configuration = context.load_untrusting(args.directory.as_deref())?;
    let Some(request) = configuration.trust_request else {
        let record = configuration.trust_record.as_ref();
        return already_trusted(args, context, format, record);
    };
    let json = context.output.has_json_errors();
    if !consent && !prompt::is_possible() {
        let error = Error::denied("the project is not trusted, and there is no terminal to ask on")
            .with_hint(format!("{} --yes trusts exactly this", request.command()));
        if json {
            let changed = request.previous.as_ref().map(|_| request.difference_lines());
            let lines = changed.into_iter().flatten().chain(request.full_lines());
            return Err(error.with_details(lines.map(|line| line.text())).into());
        }
        // Not as details of the error, which are limited: the whole request must be shown.
        print_request(&request, context);
        return Err(error.into());
    }
    let trusted = if consent {
        if !json {
            print_request(&request, context);
        }
        context.trust(&request, args.author)?;
        true
    } else if args.author {
        let page = present::trust::whole(&request);
        let question = "Trust this project as its author?";
        let yes = prompt::confirm(context.output.clone(), page, question).await;
        let yes = yes == crate::host::policy::Approval::Granted;
        if yes {
            context.trust(&request, true)?;
        }
        yes
    } else {
        context.ask_trust(&request).await?
    };
    if !trusted {
        return Err(Error::denied("the project is not trusted").into());
    }
    let store = context.trust_store()?;
    let project = store.project(&request.root).map(AsRef::as_ref);
    report(context, format, "trusted ", project.into_iter().collect())
}

/// What changed since it was trusted, if it was, and then everything.
fn print_request(request: &TrustRequest, context: &CommandContext) {
    if request.previous.is_some() {
        context.output.stderr_page(&present::trust::question(request));
    }
    context.output.stderr_page(&present::trust::whole(request));
}

/// Handles a project without open questions; `--author` may still change how it is trusted.
fn already_trusted(
    args: &TrustArgs,
    context: &CommandContext,
    format: Format,
    record: Option<&Arc<ProjectRecord>>,
) -> CommandResult {
    let mut store = context.trust_store()?;
    if let Some(project) = record.filter(|project| args.author && !project.allows_code_changes) {
        let request = TrustRequest {
            root: project.root.clone(),
            bundle: project.bundle.clone(),
            ..TrustRequest::default()
        };
        store.trust(&request, true, context.now())?;
        let project = store.project(&request.root).map(AsRef::as_ref);
        return report(context, format, "trusted as its author ", project.into_iter().collect());
    }
    let projects: Vec<&ProjectRecord> = record.map(AsRef::as_ref).into_iter().collect();
    if context.output.report(format, &TrustListJson::from(projects), Page::default)? {
        context.output.note(match record {
            Some(_) => "already trusted",
            None => "nothing to trust: no entry here reaches beyond its project",
        });
    }
    Ok(())
}

fn revoke(directory: Option<&Path>, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let directory = context.directory_of(directory.unwrap_or(Path::new("")));
    let directory = directory.canonicalize().unwrap_or(directory);
    let mut store = context.trust_store()?;
    let mut gone = store.revoke(&directory)?;
    // From within a project, that is the one it asks for too.
    let around = directory.ancestors().find(|parent| store.project(parent).is_some());
    if let Some(project) = around.map(Path::to_path_buf).filter(|_| gone.is_empty()) {
        gone = store.revoke(&project)?;
    }
    if gone.is_empty() {
        let shown = directory.display();
        return Err(Error::usage(format!("no project in {shown} is trusted"))
            .with_hint("'toolhost trust list' shows those that are")
            .into());
    }
    report(context, format, "no longer trusted ", gone.iter().map(AsRef::as_ref).collect())
}

fn list(context: &CommandContext) -> CommandResult {
    let format = context.format(formats::WORDS)?;
    let store = context.trust_store()?;
    let projects = store.list();
    let value =
        TrustListJson::from(projects.iter().map(AsRef::as_ref).collect::<Vec<&ProjectRecord>>());
    let names = projects.iter().map(|project| project.root.display().to_string());
    let page = || present::trust::list(projects.iter().map(AsRef::as_ref));
    if context.output.listing(format, &value, names, page)? && projects.is_empty() {
        context.output.note("no project is trusted");
    }
    Ok(())
}

/// Says what became of projects.
fn report(
    context: &CommandContext,
    format: Format,
    message: &str,
    projects: Vec<&ProjectRecord>,
) -> CommandResult {
    let roots: Vec<String> =
        projects.iter().map(|project| project.root.display().to_string()).collect();
    if context.output.report(format, &TrustListJson::from(projects), Page::default)? {
        for root in &roots {
            context.output.note(done(message, root));
        }
    }
    Ok(())
}

shape! {
    /// The projects that are trusted; for `trust` the one here, for `revoke` those that were.
    pub TrustListJson<'a> of trusted: Vec<&'a ProjectRecord> {
        projects: Vec<TrustedProjectJson<'a>> = trusted.into_iter().map(Into::into).collect(),
    }
}

shape! {
    /// A project that is trusted.
    pub TrustedProjectJson<'a> of project: &'a ProjectRecord, with {
        let bundle = &project.bundle;
    } {
        /// Its directory, links resolved.
        root: String = project.root.display().to_string(),
        /// When it was trusted (RFC 3339).
        when: &'a str = &project.trusted_at,
        /// Whether it is trusted as the user's own project: its code may change without asking again.
        author: bool = project.allows_code_changes,
        /// Its configuration files, relative to the directory.
        files: Vec<&'a str> = bundle.files.keys().map(String::as_str).collect(),
        /// What its entries would do.
        entries: Vec<TrustedEntryJson<'a>> = bundle.entries.iter().map(Into::into).collect(),
        /// How many files of code were trusted with it.
        code: usize = bundle.code.len(),
        /// The user's own entries that it replaces.
        replaces: &'a [String] = &bundle.replaced_names,
    }
}

shape! {
    /// An entry of a trusted project.
    pub TrustedEntryJson<'a> of entry: &'a EntryRecord {
        /// Its name.
        name: &'a str = &entry.name,
        /// The file that defines it.
        file: &'a str = &entry.file,
        /// What it would do: one line, then details.
        lines: &'a [String] = &entry.lines,
    }
}
