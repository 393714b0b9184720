//! An ad-hoc server, named on the command line and in no file, and which command lines name one.

use std::path::{Path, PathBuf};

use clap::Arg;
use clap::builder::{StringValueParser, TypedValueParser};
use serde_json::{Map, Value, json};

use super::args::{Cli, CliCommand};
use super::commands::auth::{AuthAction, AuthArgs};
use crate::config::node::COMMAND_LINE;
use crate::config::secrets::secrets_in_words;
use crate::model::{Error, check_name, safe_name};
use crate::util::regular_file;
use crate::util::text::shell_quoted;

const DEFAULT_NAME: &str = "server";
const HIDDEN: &str = "…";
/// Maximum length of a name derived from a command or a URL.
const MAX_NAME: usize = 40;

/// Launchers, which start the actual program.
const LAUNCHERS: [&str; 21] = [
    "npx", "bunx", "bun", "pnpm", "pnpx", "yarn", "npm", "node", "nodejs", "deno", "tsx", "uvx",
    "uv", "pipx", "python", "python3", "ruby", "env", "docker", "podman", "java",
];
const VERBS: [&str; 6] = ["run", "exec", "dlx", "x", "tool", "start"];

const VALUE_OPTIONS: [&str; 11] = [
    "--env",
    "--env-file",
    "--volume",
    "--mount",
    "--name",
    "--network",
    "--user",
    "--directory",
    "--project",
    "--from",
    "--with",
];
/// Those of `docker` and `podman`, which mean something else to interpreters.
const CONTAINER_OPTIONS: [&str; 5] = ["-e", "-v", "-p", "-u", "-w"];
/// Scripts that are named for what they are to their package, not for what they do.
const ENTRY_POINTS: [&str; 4] = ["index", "main", "cli", "__main__"];
const BUILD_DIRECTORIES: [&str; 6] = ["dist", "build", "out", "src", "lib", "bin"];
/// How far above a script its package is searched, in directories.
const MAX_DEPTH: usize = 6;
/// The largest package.json that is read, in bytes.
const MAX_PACKAGE: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdHocServer {
    pub name: String,
    /// Its entry, with references not yet expanded.
    pub entry: Map<String, Value>,
    /// The end of a shell command line that names it again: `-- COMMAND`, preceded by `--as` and
    /// `--header` if given. Apparent secrets are replaced by `…`.
    pub command_end: String,
}

pub fn is_url(word: &str) -> bool {
    ["http://", "https://", "ws://", "wss://", "unix:"]
        .iter()
        .any(|scheme| word.starts_with(scheme))
}

impl AdHocServer {
    /// The server of a command line or a single URL. `name` is the value of `--as`; `headers` are
    /// those of `--header`, with variables to expand.
    pub fn new(words: &[String], name: Option<&str>, headers: &[String]) -> Result<Self, Error> {
        let derived = match words {
            [url] if is_url(url) => name_of_url(url),
            words => name_of_command(words),
        };
        let name = name.map_or_else(|| derived.clone(), str::to_owned);
        check_name(&name).map_err(|error| Error::usage(format!("--as: {error}")))?;
        let entry = match words {
            [url] if is_url(url) => {
                [("url", json!(url)), ("headers", read_headers(headers)?.into())]
            }
            [_, ..] if !headers.is_empty() => {
                return Err(Error::usage("--header needs a server with a URL")
                    .with_hint("to pass variables to a program: -- env NAME=VALUE COMMAND"));
            }
            [command, args @ ..] => [("command", json!(command)), ("args", json!(args))],
            [] => return Err(Error::usage("no command was given")),
        };
        let entry = entry.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Ok(Self { command_end: command_end(words, &derived, &name, headers), name, entry })
    }

    /// Has it restarted when files that match these patterns change.
    pub fn watch(&mut self, patterns: &[String]) {
        self.entry.insert("watch".to_owned(), json!(patterns));
    }

    /// A server file with only this server: its name for messages, and its text. The shell already
    /// expanded the words of the command line; they are not expanded again.
    pub fn file(&self) -> (PathBuf, String) {
        let mut entry = self.entry.clone();
        for key in ["command", "url", "args"] {
            entry.get_mut(key).into_iter().for_each(escape_references);
        }
        let text = json!({ "mcp_servers": { (self.name.as_str()): entry } });
        (PathBuf::from(COMMAND_LINE), text.to_string())
    }
}

fn command_end(words: &[String], derived: &str, name: &str, headers: &[String]) -> String {
    let mut line: Vec<String> = Vec::new();
    if name != derived {
        line.extend(["--as".to_owned(), name.to_owned()]);
    }
    for header in headers {
        let (key, value) = header.split_once(':').unwrap_or((header, ""));
        // A reference names the source of the value, not the value.
        let value = if value.contains("${") { value.trim() } else { HIDDEN };
        line.extend(["--header".to_owned(), format!("{}: {value}", key.trim())]);
    }
    line.push("--".to_owned());
    for (word, secret) in words.iter().zip(secrets_in_words(words.iter().map(String::as_str))) {
        line.push(match secret {
            Some((_, value)) => format!("{}{HIDDEN}", word.strip_suffix(value).unwrap_or_default()),
            None if is_url(word) => word
                .split_once('?')
                .map_or_else(|| word.clone(), |(url, _)| format!("{url}?{HIDDEN}")),
            None => word.clone(),
        });
    }
    shell_quoted(&line)
}

fn escape_references(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("${", "$${"),
        Value::Array(items) => items.iter_mut().for_each(escape_references),
        _ => {}
    }
}

fn read_headers(headers: &[String]) -> Result<Map<String, Value>, Error> {
    let pair = |header: &String| match header.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), Value::from(value.trim())))
        }
        _ => Err(Error::usage("--header: expected 'Name: value'")),
    };
    headers.iter().map(pair).collect()
}

/// `https://mcp.linear.app/mcp` is `linear`, `http://localhost:8001` is `localhost`.
fn name_of_url(url: &str) -> String {
    let parsed = url::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| url.domain());
    let mut labels = host.into_iter().flat_map(|host| host.split('.'));
    let name = labels.find(|label| !matches!(*label, "www" | "mcp" | "api"));
    name.map_or_else(|| DEFAULT_NAME.to_owned(), usable)
}

/// `python3 server.py` is `server`, `npx -y @scope/server-files@1.2` is `server-files`, and
/// `node dist/index.js` the name in the nearest package.json.
fn name_of_command(words: &[String]) -> String {
    let file_name =
        |word: &str| Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_meant = |word: &&String| {
        let name = file_name(word);
        !word.starts_with('-')
            && !word.contains('=')
            && !LAUNCHERS.contains(&name.as_str())
            && !VERBS.contains(&name.as_str())
    };
    let runs_container =
        words.first().is_some_and(|word| ["docker", "podman"].contains(&&*file_name(word)));
    let is_value = |at: usize| {
        at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|option| {
            VALUE_OPTIONS.contains(&option.as_str())
                || (runs_container && CONTAINER_OPTIONS.contains(&option.as_str()))
        })
    };
    let mut named = words.iter().enumerate().filter(|(at, word)| is_meant(word) && !is_value(*at));
    let Some((_, word)) = named.next() else { return DEFAULT_NAME.to_owned() };
    if word.contains(char::is_whitespace) {
        return DEFAULT_NAME.to_owned();
    }
    let name = file_name(word);
    let name = name.split(['@', ':']).next().unwrap_or_default();
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    let package = ENTRY_POINTS.contains(&&*stem).then(|| package_of(Path::new(word))).flatten();
    usable(package.as_deref().unwrap_or(&stem))
}

/// The name of the package that a script belongs to: in the nearest package.json, without its
/// scope, or else the directory around the one for built files.
fn package_of(script: &Path) -> Option<String> {
    let script = script.canonicalize().ok()?;
    let directories = || script.ancestors().skip(1).take(MAX_DEPTH);
    let package = directories().find_map(|directory| {
        let bytes = regular_file::bytes(&directory.join("package.json"), MAX_PACKAGE).ok()?;
        let package: Value = serde_json::from_slice(&bytes).ok()?;
        let name = package.get("name")?.as_str()?;
        Some(name.rsplit('/').next().unwrap_or(name).to_owned())
    });
    package.or_else(|| {
        let names = directories().filter_map(|directory| directory.file_name()?.to_str());
        let mut names = names.filter(|name| !BUILD_DIRECTORIES.contains(name));
        names.next().map(str::to_owned)
    })
}

fn usable(text: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = text.chars().map(fits).take(MAX_NAME).collect();
    match name.trim_matches('-') {
        "" => DEFAULT_NAME.to_owned(),
        name => name.to_owned(),
    }
}

/// The words of an ad-hoc server at the end of a command line, which [`Cli`] reads.
pub fn command() -> Arg {
    Arg::new("server_command")
        .last(true)
        .num_args(1..)
        .value_name("COMMAND|URL")
        .help("Use only this server: its command line, or its URL")
}

/// Moves the server from the words of a command, if given, to the options. A command that needs a
/// server name and has none uses this server.
pub fn take_server(cli: &mut Cli) -> Result<(), Error> {
    let Cli { global, command, server_command, .. } = cli;
    let mut words = std::mem::take(server_command);
    if words.is_empty() {
        words.extend(command.as_mut().and_then(take_url));
    }
    if let Some(url) = &global.server_url {
        if !is_url(url) {
            return Err(Error::usage(format!("--server-url: '{url}' is not a URL"))
                .with_hint("such as https://example.com/mcp, or unix:///run/mcp.sock"));
        }
        if !words.is_empty() {
            return Err(Error::usage("two servers are given: --server-url and another"));
        }
        words.push(url.clone());
    }
    if words.is_empty() {
        return match (&global.rare.server_name, global.rare.header.first()) {
            (None, None) => Ok(()),
            // This command writes one to a file, including headers.
            _ if matches!(command, Some(CliCommand::Add(_))) => Ok(()),
            _ => Err(Error::usage("--as and --header are for an ad-hoc server")
                .with_hint("name it: --server-url URL, or -- COMMAND at the end")),
        };
    }
    let mut server =
        AdHocServer::new(&words, global.rare.server_name.as_deref(), &global.rare.header)?;
    if let Some(CliCommand::Serve(args)) = command
        && !args.watch.is_empty()
    {
        server.watch(&args.watch);
    }
    if let Some(command) = command {
        set_default_server(command, &server.name);
    }
    global.ad_hoc = Some(server);
    Ok(())
}

/// Reads the name of a server, which may be the one in its file, with characters that its name here
/// does not have; an address stays as it is.
pub fn server() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(|text| if is_url(&text) { text } else { safe_name(&text) })
}

/// Takes the URL that stands in place of a name.
fn take_url(command: &mut CliCommand) -> Option<String> {
    let is_url = |word: &mut String| is_url(word);
    match command {
        CliCommand::List(args) => {
            args.query.first_mut().is_some_and(is_url).then(|| args.query.remove(0))
        }
        CliCommand::Servers(args) => {
            args.names.first_mut().is_some_and(is_url).then(|| args.names.remove(0))
        }
        CliCommand::Inspect(args) => args.name.take_if(is_url),
        CliCommand::Trace(args) => args.server.take_if(is_url),
        CliCommand::Record(args) => args.server.take_if(is_url),
        _ => None,
    }
}

fn set_default_server(command: &mut CliCommand, name: &str) {
    let named = match command {
        CliCommand::Inspect(args) => &mut args.name,
        CliCommand::Trace(args) => &mut args.server,
        CliCommand::Record(args) => &mut args.server,
        CliCommand::Auth(AuthArgs { action: AuthAction::Login { server, .. } }) => server,
        _ => return,
    };
    named.get_or_insert_with(|| name.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_server_is_named_after_its_script_package_or_host() {
        for (line, name) in [
            ("python3 server.py", "server"),
            ("./target/debug/my_server --stdio", "my_server"),
            ("npx -y @modelcontextprotocol/server-everything@1.2", "server-everything"),
            ("uvx mcp-server-time", "mcp-server-time"),
            ("uv run --directory=x python -m weather.main", "weather"),
            ("env KEY=1 node build/index.js", "index"),
            ("docker run -i --rm mcp/fetch:latest", "fetch"),
            ("docker run -i --rm -e API_URL mcp/fetch:latest", "fetch"),
            ("uvx --from git+https://x.test/repo weather", "weather"),
            ("python3 -u notes.py", "notes"),
            ("python3", "server"),
            ("https://mcp.linear.app/mcp", "linear"),
            ("http://localhost:8001", "localhost"),
            ("http://127.0.0.1:8001/mcp", "server"),
            ("unix:///run/mcp.sock", "server"),
        ] {
            assert_eq!(AdHocServer::new(&words(line), None, &[]).unwrap().name, name, "{line}");
        }
        let code = ["sh", "-c", "exec x"].map(str::to_owned);
        assert_eq!(AdHocServer::new(&code, None, &[]).unwrap().name, "sh");
        let named = AdHocServer::new(&words("python3 s.py"), Some("mine"), &[]).unwrap();
        assert_eq!(named.name, "mine");
        assert!(AdHocServer::new(&words("x"), Some("not a name"), &[]).is_err());
    }

    #[test]
    fn an_entry_point_has_the_name_of_its_package() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("wiki/dist/index.js");
        std::fs::create_dir_all(script.parent().unwrap()).unwrap();
        std::fs::write(&script, "").unwrap();
        let line = format!("node {}", script.display());
        let name = || AdHocServer::new(&words(&line), None, &[]).unwrap().name;
        assert_eq!(name(), "wiki");
        let package = directory.path().join("wiki/package.json");
        std::fs::write(&package, r#"{ "name": "@acme/mcp-wiki" }"#).unwrap();
        assert_eq!(name(), "mcp-wiki");
        std::fs::write(&package, "{ damaged").unwrap();
        assert_eq!(name(), "wiki");
    }

    #[test]
    fn its_words_can_be_pasted_and_hold_no_secret() {
        let end = |line: &str, name| AdHocServer::new(&words(line), name, &[]).unwrap().command_end;
        assert_eq!(end("python3 my$server.py", None), "-- python3 'my$server.py'");
        assert_eq!(end("python3 s.py", Some("mine")), "--as mine -- python3 s.py");
        for (line, shown) in [
            ("env API_KEY=hunter2 LANG=C run", "-- env API_KEY=… LANG=C run"),
            ("run --token hunter2 -v", "-- run --token … -v"),
            ("run --api-key=hunter2", "-- run --api-key=…"),
            ("https://x.test/mcp?key=hunter2", "-- 'https://x.test/mcp?…'"),
        ] {
            assert_eq!(end(line, None).replace('\'', ""), shown.replace('\'', ""), "{line}");
        }
        let headers = ["X-Key: hunter2", "Authorization: Bearer ${TOKEN}"].map(str::to_owned);
        let remote = AdHocServer::new(&words("https://x.test"), None, &headers).unwrap();
        assert!(!remote.command_end.contains("hunter2"), "{}", remote.command_end);
        assert!(remote.command_end.contains("${TOKEN}"), "{}", remote.command_end);
    }

    #[test]
    fn what_a_shell_has_read_is_not_expanded_again_and_headers_are() {
        let program = AdHocServer::new(&words("run ${HOME}"), None, &[]).unwrap();
        assert!(program.file().1.contains("$${HOME}"), "{}", program.file().1);
        let headers = ["Authorization: Bearer ${TOKEN}".to_owned()];
        let remote = AdHocServer::new(&words("https://x.test"), None, &headers).unwrap();
        let entry = &remote.entry["headers"];
        assert_eq!(entry, &json!({ "Authorization": "Bearer ${TOKEN}" }));
        assert!(AdHocServer::new(&words("x"), None, &headers).is_err());
        assert!(AdHocServer::new(&words("https://x.test"), None, &["novalue".into()]).is_err());
    }
}
