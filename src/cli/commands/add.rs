//! `toolhost add`: adding a server to mcp.yaml.

use serde_json::{Map, json};

use super::prelude::*;
use crate::cli::ad_hoc::AdHocServer;
use crate::cli::curl;
use crate::cli::json::error::FileChangeJson;
use crate::cli::mcp_file::{McpFile, McpFileArgs};
use crate::config::secrets;
use crate::model::{Layer, ToolDefinition, check_name};
use crate::util::text::variable_name;

const SHOWN_TOOLS: usize = 8;

/// Add a server to mcp.yaml.
///
/// Writes to the project's file if there is one, otherwise to your own; comments and layout are
/// kept. Then the server is started once to show its tools. After -- a curl command becomes an
/// API tool in tools.yaml instead, whose arguments stand as {name} in it. In a project that you trust, the new
/// entry is trusted with it; otherwise you are asked first.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
#[command(after_help = "\
Examples:
  toolhost add time -- uvx mcp-server-time
  toolhost add github -e 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- npx -y @modelcontextprotocol/server-github
  toolhost add weather -- curl 'https://api.example/weather?city={city}' -H 'X-Key: ${WEATHER_KEY}'
  toolhost add linear https://mcp.linear.app/mcp
  toolhost add search http://localhost:8001/mcp --bearer-token-env SEARCH_TOKEN")]
pub struct AddArgs {
    /// Name of the server, the prefix of its tools
    pub name: String,
    /// URL of the server
    #[arg(required_unless_present = "command", conflicts_with = "command",
          value_hint = clap::ValueHint::Url)]
    pub url: Option<String>,
    /// Command line of the server, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Environment variable for the server (repeatable); NAME alone passes your own on
    #[arg(short, long = "env", value_name = "NAME[=VALUE]", requires = "command")]
    pub env: Vec<String>,
    /// Environment variable that holds the bearer token
    #[arg(long, value_name = "NAME", requires = "url")]
    pub bearer_token_env: Option<String>,
    /// Description of the server
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Which file is written.
    #[command(flatten)]
    pub file: McpFileArgs,
}

pub async fn run(args: &AddArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    check_name(&args.name).map_err(|error| Error::usage(error.to_string()))?;
    if let [program, words @ ..] = &args.command[..]
        && program == "curl"
    {
        return add_tool(args, words, context, format);
    }
    let entry = entry(args, &context.global.rare.header)?;
    let mut file = McpFile::open(args.file, &*context.environment)?;
    file.require_new(&args.name)?;
    file.set(&args.name, Some(&entry))?;
    let replaced = built_in_examples(context);
    let trust_command = context.write_server_file(&file)?;
    if !report(&args.name, &file, trust_command.as_ref(), context, format)? {
        return Ok(());
    }
    if let Some(replaced) = replaced {
        context.output.note(format!(
            "your own files now replace the built-in examples: {replaced}; \
             'toolhost init --user' writes a tools.yaml to start from"
        ));
    }
    show_tools(&args.name, context).await;
    context.note_untrusted(trust_command);
    context.output.note(hint(format!("try it: toolhost list --server {}", args.name)));
    Ok(())
}

/// Says what was added; returns whether notes may follow.
fn report(
    name: &str,
    file: &McpFile,
    trust_command: Option<&String>,
    context: &CommandContext,
    format: Format,
) -> Result<bool, CommandError> {
    let value = FileChangeJson {
        written: true,
        added: vec![name],
        trust_command: trust_command.cloned(),
        ..FileChangeJson::of(file)
    };
    let is_text = context.output.report(format, &value, Page::default)?;
    if is_text {
        let added = done("added ", name).then(Role::Plain, " to ");
        context.output.note(added.then(Role::Name, file.path.display().to_string()));
    }
    Ok(is_text)
}

/// Writes the request of a curl command as a tool.
fn add_tool(
    args: &AddArgs,
    words: &[String],
    context: &CommandContext,
    format: Format,
) -> CommandResult {
    if !args.env.is_empty() || !context.global.rare.header.is_empty() {
        return Err(Error::usage("--env and --header are for servers").into());
    }
    let mut entry = curl::entry(&args.name, words)?;
    if let Some(description) = &args.description {
        entry["description"] = description.as_str().into();
    }
    let query = entry["endpoint_url"].as_str().and_then(|url| url.parse::<url::Url>().ok());
    let query = query.iter().flat_map(url::Url::query_pairs);
    for (name, value) in query {
        refuse_plain_secret(&name, &value)?;
    }
    for (name, value) in
        ["headers", "auth"].iter().filter_map(|key| entry[key].as_object()).flatten()
    {
        refuse_plain_secret(name, value.as_str().unwrap_or_default())?;
    }
    let mut file = McpFile::tools(args.file, &*context.environment)?;
    file.require_new(&args.name)?;
    file.add_tool(&entry)?;
    let trust_command = context.write_server_file(&file)?;
    if report(&args.name, &file, trust_command.as_ref(), context, format)? {
        context.note_untrusted(trust_command);
        context.output.note(hint(format!("try it: toolhost call {}", args.name)));
    }
    Ok(())
}

fn refuse_plain_secret(name: &str, text: &str) -> Result<(), Error> {
    if text.contains("${") || !(secrets::names_secret(name) || secrets::looks_secret(text)) {
        return Ok(());
    }
    Err(Error::usage(format!("{name} would be stored in plain text"))
        .with_hint(format!("use a reference, in single quotes: '${{{}}}'", variable_name(name))))
}

/// What is shown while no file is found at all, when that is so.
fn built_in_examples(context: &CommandContext) -> Option<String> {
    let (configuration, _) = assembly::load(&context.load_request(), &*context.environment);
    let is_embedded = configuration.files.iter().any(|file| file.layer == Layer::Embedded);
    is_embedded.then(|| {
        let tools = plural(configuration.tools.len(), "entry of tools", "entries of tools");
        let servers = configuration.servers.iter().map(|server| format!("'{}'", server.name));
        format!("{tools} and the server {}", servers.collect::<Vec<_>>().join(", "))
    })
}

/// Starts the new server and shows what it offers, unless it is not trusted yet. What keeps it from
/// starting is a warning: the entry is written.
async fn show_tools(name: &str, context: &CommandContext) {
    let names = [name.to_owned()];
    let assembly = match context.assemble(StartScope::Servers(&names)).await {
        Ok(assembly) => assembly,
        Err(error) => return context.output.warn(error.message()),
    };
    let statuses = assembly.host.check_servers(&names).await;
    let catalogue = assembly.host.catalogue(&ListScope::Servers(names.to_vec())).await;
    let of_server = |tool: &&Arc<ToolDefinition>| tool.name.component() == Some(name);
    let tools: Vec<&str> =
        catalogue.tools.iter().filter(of_server).map(|tool| tool.name.tool()).collect();
    if !tools.is_empty() {
        let count = plural(tools.len(), "tool", "tools");
        let shown = tools.iter().take(SHOWN_TOOLS).copied().collect::<Vec<_>>().join(", ");
        let more = if tools.len() > SHOWN_TOOLS { ", …" } else { "" };
        context.output.note(format!("{count}: {shown}{more}"));
    }
    for error in statuses.iter().filter_map(|status| status.state.error()) {
        context.output.warn(&format!("it does not start yet: {}", error.message()));
        for line in error.details().iter().map(String::as_str).chain(error.hint()) {
            context.output.note(format!("  {line}"));
        }
    }
}

fn entry(args: &AddArgs, headers: &[String]) -> Result<Value, Error> {
    let mut entry = Map::new();
    if let Some(description) = &args.description {
        entry.insert("description".to_owned(), description.as_str().into());
    }
    let words = match &args.url {
        Some(url) if !ad_hoc::is_url(url) => {
            return Err(Error::usage(format!("'{url}' is not a URL"))
                .with_hint("put a command after --: toolhost add NAME -- COMMAND"));
        }
        Some(url) => std::slice::from_ref(url),
        None => &args.command[..],
    };
    entry.extend(AdHocServer::new(words, Some(&args.name), headers)?.entry);
    if let Some(variable) = &args.bearer_token_env {
        let auth = json!({ "type": "bearer", "token_env_var": variable });
        entry.insert("auth".to_owned(), auth);
    }
    if let Some(word) = args.env.iter().find(|word| word.is_empty() || word.starts_with('=')) {
        return Err(Error::usage(format!("-e '{word}': a variable needs a name")));
    }
    let set = args.env.iter().filter_map(|word| word.split_once('='));
    let set: Map<String, Value> =
        set.map(|(name, value)| (name.to_owned(), value.into())).collect();
    let passed: Vec<_> = args.env.iter().filter(|word| !word.contains('=')).collect();
    let headers = entry.get("headers").and_then(Value::as_object);
    for (name, value) in set.iter().chain(headers.into_iter().flatten()) {
        refuse_plain_secret(name, value.as_str().unwrap_or_default())?;
    }
    entry.insert("env".to_owned(), set.into());
    entry.insert("env_keys".to_owned(), json!(passed));
    entry.retain(|_, value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(pairs) => !pairs.is_empty(),
        _ => true,
    });
    Ok(Value::Object(entry))
}
