//! `toolhost connect` and `disconnect`: `toolhost serve` in the configuration of editors and agents.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use super::import::{editor_names, known_editors, shown};
use super::prelude::*;
use crate::cli::grammar::{self, usage_error};
use crate::cli::json::error::FileChangeJson;
use crate::cli::mcp_file::{self, McpFile};
use crate::config::editors::{self, EDITORS, Editor};
use crate::config::environment::Environment;
use crate::config::read;
use crate::model::check_name;
use crate::util::atomic_file::{self, FileMode};

/// Give an editor or agent all your tools: add 'toolhost serve' to its configuration.
///
/// Shows the change and writes it after confirmation. Comments and order of the file are kept, and
/// the file as it was is kept beside it, as FILE.toolhost.bak.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
#[command(after_help = "\
Examples:
  toolhost connect claude
  toolhost connect cursor --project
  toolhost connect codex -- --profile reviewer
  toolhost connect --list")]
pub struct ConnectArgs {
    /// Editor or agent
    #[arg(value_parser = editor_names(), required_unless_present = "list", hide_possible_values = true)]
    pub client: Option<String>,
    /// List editors and agents with a configuration file, and which have toolhost
    #[arg(long, conflicts_with_all = ["client", "options", "yes", "dry_run"])]
    pub list: bool,
    #[command(flatten)]
    pub entry: ClientEntryArgs,
    /// Options for 'toolhost serve', after --
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

/// Remove 'toolhost serve' from the configuration of an editor or agent.
///
/// The counterpart of 'connect': shows the change and writes it after confirmation.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
#[command(
    after_help = "Examples:\n  toolhost disconnect claude\n  toolhost disconnect cursor --project"
)]
pub struct DisconnectArgs {
    /// Editor or agent
    #[arg(value_parser = editor_names(), hide_possible_values = true)]
    pub client: String,
    #[command(flatten)]
    pub entry: ClientEntryArgs,
}

/// Which entry of which file.
#[derive(Debug, Args)]
pub struct ClientEntryArgs {
    /// Change its configuration for the project in this directory instead of your own
    #[arg(long)]
    pub project: bool,
    /// Name of the entry
    #[arg(long, value_name = "NAME", default_value = "toolhost")]
    pub name: String,
    /// Write without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Show the change without writing it
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
}

pub async fn run(args: &ConnectArgs, context: &CommandContext) -> CommandResult {
    let Some(client) = args.client.as_deref().and_then(Editor::named) else {
        return list(context);
    };
    check_name(&args.entry.name).map_err(|error| Error::usage(error.to_string()))?;
    let words = ["toolhost", "serve"].into_iter().map(OsString::from);
    let line: Vec<OsString> = words.chain(args.options.iter().map(OsString::from)).collect();
    grammar::parse(&line).map_err(|error| usage_error(&error.to_string()))?;
    let arguments: Vec<String> =
        std::iter::once("serve".to_owned()).chain(args.options.iter().cloned()).collect();
    let program = program(args.entry.project, &*context.environment)?;
    let entry = client.entry(&program, &arguments);
    if change(client, &args.entry, Some(&entry), context).await? {
        context.output.note(hint(format!("restart {}, or reload its MCP servers", client.title)));
    }
    Ok(())
}

pub async fn disconnect(args: &DisconnectArgs, context: &CommandContext) -> CommandResult {
    let Some(client) = Editor::named(&args.client) else { return Ok(()) };
    change(client, &args.entry, None, context).await.map(drop)
}

/// The program as the client starts it: by its name where others share the file, otherwise by its
/// path, because a client started from a desktop has another PATH.
fn program(project: bool, environment: &dyn Environment) -> Result<String, Error> {
    let Some(own) = environment.executable().filter(|_| !project) else {
        return Ok("toolhost".to_owned());
    };
    let path = environment.var("PATH").unwrap_or_default();
    let same = |path: &PathBuf| path.canonicalize().ok() == own.canonicalize().ok();
    let installed = std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("toolhost"))
        .find(same);
    let program = installed.unwrap_or(own);
    let text = program.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::usage(format!("{} is not UTF-8", program.display())))
}

/// Writes or removes an entry, after a person agreed; returns whether notes about it may follow.
async fn change(
    client: &'static Editor,
    args: &ClientEntryArgs,
    entry: Option<&Value>,
    context: &CommandContext,
) -> Result<bool, CommandError> {
    let format = context.format(formats::REPORT)?;
    let output = &context.output;
    let mut file = open(client, args.project, &*context.environment)?;
    let old = existing(&file, client, &args.name)?;
    if let Some(other) = old.as_ref().filter(|old| !editors::is_toolhost(old)) {
        let what = format!("'{}' in {} is another server", args.name, file.path.display());
        let command = ["command", "cmd", "url"].iter().find_map(|key| other.get(key));
        let detail = command.map(|command| format!("it starts or contacts {command}"));
        return Err(Error::usage(what)
            .with_details(detail)
            .with_hint("--name chooses another name; toolhost changes only its own entries")
            .into());
    }
    let nothing = if old.is_none() && entry.is_none() {
        Some(format!("{} has no entry '{}'", file.path.display(), args.name))
    } else {
        file.set(&args.name, entry)?;
        (file.new == file.old).then(|| format!("{} is up to date", file.path.display()))
    };
    if let Some(why) = nothing {
        if output.report(format, &FileChangeJson::of(&file), Page::default)? {
            output.note(why);
        }
        return Ok(false);
    }
    let name = vec![args.name.as_str()];
    let (added, removed) = if entry.is_some() { (name, vec![]) } else { (vec![], name) };
    let mut change = FileChangeJson { added, removed, ..FileChangeJson::of(&file) };
    let page = file.difference();
    if args.dry_run {
        output.report(format, &change, || page)?;
        return Ok(false);
    }
    prompt::agree_to_write(output, page, args.yes).await?;
    let backup = back_up(&file)?;
    file.write()?;
    change.written = true;
    change.backup = backup.as_ref().map(|path| path.display().to_string());
    if !output.report(format, &change, Page::default)? {
        return Ok(false);
    }
    let verb = if entry.is_some() { "connected " } else { "disconnected " };
    output.note(done(verb, client.title));
    if let Some(backup) = backup {
        output.note(format!("the file as it was: {}", backup.display()));
    }
    Ok(true)
}

fn existing(file: &McpFile, client: &Editor, name: &str) -> Result<Option<Value>, Error> {
    let tree = editors::parse_file(&file.path, &file.old).map_err(mcp_file::error)?;
    Ok(tree.get(client.servers).and_then(|servers| servers.get(name)).cloned())
}

/// The client's file, links resolved. A link may not lead out of the project, or to other people's
/// files.
fn open(
    client: &'static Editor,
    project: bool,
    environment: &dyn Environment,
) -> Result<McpFile, Error> {
    let Some(path) = client.own_file(project, environment) else {
        let (what, hint) = if project {
            ("of a project", "leave out --project")
        } else {
            ("file outside projects here", "is HOME set?")
        };
        let message = format!("{} has no configuration {what}", client.title);
        return Err(Error::usage(message).with_hint(hint));
    };
    let failed = |path: &Path, why: &io::Error| {
        Error::usage(format!("cannot use {}: {why}", path.display()))
    };
    let is_there = |path: &&Path| path.symlink_metadata().is_ok();
    let nearest = path.ancestors().find(is_there).unwrap_or(Path::new("/"));
    let real = nearest.canonicalize().map_err(|why| failed(nearest, &why))?;
    let below = path.strip_prefix(nearest).unwrap_or(Path::new(""));
    let target = real.components().chain(below.components()).collect::<PathBuf>();
    if project {
        let cwd = environment.cwd();
        let root = cwd.canonicalize().map_err(|why| failed(&cwd, &why))?;
        if !target.starts_with(&root) {
            let what =
                format!("{} leads out of the project, to {}", path.display(), target.display());
            return Err(Error::denied(what));
        }
    } else {
        let owner = real.metadata().map_err(|why| failed(&real, &why))?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            let what = format!("{} belongs to another user (uid {owner})", real.display());
            return Err(Error::denied(what));
        }
    }
    let old = if nearest == path {
        read::read(&target, false).map_err(mcp_file::error)?.1
    } else {
        String::new()
    };
    let keys = std::slice::from_ref(&client.servers);
    Ok(McpFile { path: target, is_own: !project, keys, new: old.clone(), old })
}

/// Keeps the file as it was, readable by its owner only; a link in the place of the copy is not
/// followed.
fn back_up(file: &McpFile) -> Result<Option<PathBuf>, Error> {
    if file.old.is_empty() {
        return Ok(None);
    }
    let mut path = file.path.clone().into_os_string();
    path.push(".toolhost.bak");
    let path = PathBuf::from(path);
    if path.is_symlink() {
        let what = format!("{} is a link", path.display());
        return Err(Error::denied(what).with_hint("nothing was written; remove the link"));
    }
    atomic_file::replace(&path, file.old.as_bytes(), FileMode::Private).map_err(|why| {
        Error::usage(format!("cannot write {}: {why}", path.display()))
            .with_hint("nothing was written")
    })?;
    Ok(Some(path))
}

fn list(context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let (environment, output) = (&*context.environment, &context.output);
    let mut clients = Vec::new();
    for client in EDITORS {
        for project in [true, false] {
            let path = client.own_file(project, environment).filter(|path| path.is_file());
            let Some(path) = path else { continue };
            let names = read::read(&path, false)
                .and_then(|(_, text)| editors::parse_file(&path, &text))
                .map(|content| own_entries(&content, client));
            let problem = names.as_ref().err().cloned();
            if let Some(problem) = &problem {
                output.warn(&present::messages::located(problem));
            }
            clients.push(ClientJson {
                client: client.name,
                project,
                file: path.display().to_string(),
                entries: names.unwrap_or_default(),
                error: problem.map(|problem| problem.message),
            });
        }
    }
    let value = ClientsJson { clients: &clients };
    let page = || clients_table(&clients, environment).layout(output.width());
    if output.report(format, &value, page)? && clients.is_empty() {
        output.note(format!("no configuration of {} found", known_editors()));
    }
    Ok(())
}

fn clients_table(clients: &[ClientJson], environment: &dyn Environment) -> Table {
    let mut table = Table::new(["CLIENT", "FOR", "TOOLHOST", "FILE"].map(TableColumn::new));
    for client in clients {
        let state = match (&client.error, &client.entries[..]) {
            (Some(_), _) => Line::styled(Role::Error, "unreadable"),
            (None, []) => hint("no"),
            (None, names) => Line::styled(Role::Success, format!("as {}", names.join(", "))),
        };
        table.row([
            Line::styled(Role::Name, client.client),
            Line::plain(if client.project { "project" } else { "you" }),
            state,
            Line::plain(shown(Path::new(&client.file), environment.home())),
        ]);
    }
    table
}

/// Editors and agents with a configuration file: `connect --list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClientsJson<'a> {
    pub clients: &'a [ClientJson],
}

/// A configuration file of an editor or agent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClientJson {
    /// The editor or agent.
    client: &'static str,
    /// Whether it is the file of the project in this directory.
    project: bool,
    file: String,
    /// The names under which it has toolhost.
    entries: Vec<String>,
    /// Why the file cannot be read.
    error: Option<String>,
}

/// The names under which a client has toolhost.
fn own_entries(content: &Value, client: &Editor) -> Vec<String> {
    let servers = content.get(client.servers).and_then(Value::as_object);
    let own = servers.into_iter().flatten().filter(|(_, entry)| editors::is_toolhost(entry));
    own.map(|(name, _)| name.clone()).collect()
}
