//! `toolhost import`: importing servers from editors and agents.

use clap::builder::PossibleValuesParser;

use super::prelude::*;
use crate::cli::json::error::FileChangeJson;
use crate::cli::mcp_file::{self, McpFile, McpFileArgs};
use crate::config::editors::{self, EDITORS, Editor, ImportedServer};
use crate::model::Diagnostic;

/// Import servers from the configuration of editors and agents.
///
/// Shows the changes to mcp.yaml and writes them after confirmation. Secrets are not copied: each
/// is replaced by a variable, which is named. Without arguments, lists what can be imported.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct ImportArgs {
    /// Editor, or path of its configuration file
    #[arg(value_name = "EDITOR|FILE", add = ArgValueCompleter::new(complete::editors))]
    pub source: Option<String>,
    /// Format of the file, if it cannot be detected
    #[arg(long, value_name = "EDITOR", value_parser = editor_names())]
    pub from: Option<String>,
    /// Only servers with this name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Write without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Show the changes without writing them
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Which file is written.
    #[command(flatten)]
    pub file: McpFileArgs,
}

pub(super) fn editor_names() -> PossibleValuesParser {
    PossibleValuesParser::new(EDITORS.iter().map(|editor| editor.name))
}

pub(super) fn known_editors() -> String {
    EDITORS.iter().map(|editor| editor.name).collect::<Vec<_>>().join(", ")
}

pub async fn run(args: &ImportArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let cwd = context.environment.cwd();
    let from = args.from.as_deref().and_then(Editor::named);
    let named = args.source.as_deref().map_or(from, Editor::named);
    let (editor, files) = match (&args.source, named) {
        (_, Some(editor)) => (Some(editor), editor.files(&*context.environment)),
        (Some(file), None) if !cwd.join(file).exists() => {
            return Err(Error::usage(format!("'{file}' is neither an editor nor a file"))
                .with_hint(format!("known editors: {}", known_editors()))
                .into());
        }
        (Some(file), None) => (from, vec![cwd.join(file)]),
        (None, None) => return list(context, format),
    };
    if let (Some(editor), []) = (editor, &files[..]) {
        return Err(Error::usage(format!("no {} configuration file found", editor.title))
            .with_hint("specify the file: toolhost import FILE")
            .into());
    }
    let mut servers: Vec<ImportedServer> = Vec::new();
    for path in &files {
        match editors::read_file(path, editor, &cwd) {
            Ok(imported) => servers.extend(imported),
            Err(diagnostic) if files.len() == 1 => return Err(mcp_file::error(diagnostic).into()),
            Err(diagnostic) if diagnostic.is_error() => {
                context.output.warn(mcp_file::error(diagnostic).message());
            }
            // One of several files of an editor may hold other things.
            Err(_) => {}
        }
    }
    servers.retain(|server| args.only.is_empty() || args.only.contains(&server.name));
    if let Some(missing) = args.only.iter().find(|name| servers.iter().all(|s| s.name != **name)) {
        return Err(Error::usage(format!("there is no server '{missing}' to import")).into());
    }
    let mut file = McpFile::open(args.file, &*context.environment)?;
    let added = add_all(&servers, &mut file, context)?;
    let mut change = FileChangeJson {
        added: added.iter().map(|server| &*server.name).collect(),
        variables: added.iter().flat_map(|server| &server.variables).map(String::as_str).collect(),
        ..FileChangeJson::of(&file)
    };
    let mut page = file.difference();
    if !change.variables.is_empty() {
        page.blank_line();
        let variables = change.variables.join(", ");
        let message = format!("Set these before use (secrets are not copied): {variables}");
        page.push(Line::plain(message));
    }
    let output = &context.output;
    if added.is_empty() {
        if output.report(format, &change, Page::default)? {
            output.note("nothing to import");
        }
        return Ok(());
    }
    if args.dry_run {
        return output.report(format, &change, || page).map(drop);
    }
    prompt::agree_to_write(output, page, args.yes).await?;
    change.trust_command = context.write_server_file(&file)?;
    change.written = true;
    if output.report(format, &change, Page::default)? {
        let count = plural(added.len(), "server", "servers");
        output.note(done(&format!("added {count} to "), file.path.display().to_string()));
        context.note_untrusted(change.trust_command);
    }
    Ok(())
}

fn add_all<'s>(
    servers: &'s [ImportedServer],
    file: &mut McpFile,
    context: &CommandContext,
) -> Result<Vec<&'s ImportedServer>, Error> {
    let mut added = Vec::new();
    for server in servers {
        let name = &server.name;
        match &server.entry {
            Err(why) => context.output.warn(&format!("skipped '{name}': {why}")),
            Ok(_) if file.has(name)? => {
                let notice = format!("skipped '{name}': already in {}", file.path.display());
                context.output.warn(&notice);
            }
            Ok(entry) => {
                file.set(name, Some(entry))?;
                added.push(server);
                if !server.dropped.is_empty() {
                    let keys = server.dropped.join(", ");
                    context.output.warn(&format!("'{name}': {keys} not imported"));
                }
            }
        }
    }
    Ok(added)
}

fn list(context: &CommandContext, format: Format) -> CommandResult {
    let (environment, output) = (&*context.environment, &context.output);
    let files = EDITORS.iter().flat_map(|editor| {
        editor.files(environment).into_iter().filter_map(move |path| {
            let read = editors::read_file(&path, Some(editor), &environment.cwd());
            let warn = |problem: &Diagnostic| {
                // One without servers is as good as none.
                if problem.is_error() {
                    output.warn(&present::messages::located(problem));
                }
            };
            Some((editor.name, path, read.inspect_err(warn).ok()?))
        })
    });
    let files: Vec<_> = files.collect();
    let value = EditorFilesJson { files: files.iter().map(Into::into).collect() };
    let page = || {
        let mut table = Table::new(["EDITOR", "SERVERS", "FILE"].map(TableColumn::new));
        for (editor, path, servers) in &files {
            table.row([
                Line::styled(Role::Name, editor),
                Line::plain(servers.len().to_string()),
                Line::plain(shown(path, environment.home())),
            ]);
        }
        table.layout(output.width())
    };
    if output.report(format, &value, page)? {
        output.note(if files.is_empty() {
            Line::plain(format!("no servers of {} found", known_editors()))
        } else {
            hint("import them: toolhost import EDITOR")
        });
    }
    Ok(())
}

/// The files of editors and agents: `import` without arguments.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EditorFilesJson<'a> {
    pub files: Vec<EditorFileJson<'a>>,
}

shape! {
    /// A file of an editor or agent.
    pub EditorFileJson<'a> of (name, path, imported): &'a (&'static str, PathBuf, Vec<ImportedServer>) {
        /// The editor or agent.
        editor: &'static str = name,
        file: String = path.display().to_string(),
        /// The names of its servers.
        servers: Vec<&'a str> = imported.iter().map(|server| &*server.name).collect(),
    }
}

pub(super) fn shown(path: &Path, home: Option<PathBuf>) -> String {
    let below = home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_path_buf));
    below.map_or_else(|| path.display().to_string(), |below| format!("~/{}", below.display()))
}
