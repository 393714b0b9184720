//! Completion candidates: names of tools, arguments, prompts, servers and profiles.
//!
//! Owns: answering the scripts of `completions/`, and the file of names seen last. Never does:
//! start or contact a server; what only a server knows comes from that file, or from the background
//! host that has it connected.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::Command;
use clap_complete::{CompleteEnv, CompletionCandidate};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::host_sockets::connected_tools::connected_tools;
use super::host_sockets::locator::HostLocator;
use super::output::streams::CommandError;
use super::{parse_errors, records, shell_quoting, views};
use crate::assembly::{self, Assembly, AssemblyOptions, FrontEnd};
use crate::catalogue::{Catalogue, query};
use crate::config;
use crate::config::editors::EDITORS;
use crate::config::environment::{Environment, ProcessEnvironment};
use crate::config::saved_calls::{SavedCall, SavedCalls};
use crate::config::spec::{Configuration, ProfileSpec};
use crate::history;
use crate::host::offerings::Offerings;
use crate::host::request::ListScope;
use crate::model::{CallFilter, Error, Origin, Prompt, ToolDefinition, ToolName, ToolSource};
use crate::util::atomic_file::{self, FileMode};
use crate::util::private_file;
use crate::util::segments::ReverseLines;
use crate::util::text;

/// The variable by which a script asks for candidates.
pub const VARIABLE: &str = "COMPLETE";
/// The most names that are kept.
const MAX_NAMES: usize = 10_000;
/// The most arguments of one tool that are kept.
const MAX_KEYS: usize = 50;
/// The most calls of the past that are offered.
const MAX_CALLS: usize = 50;
/// The largest file of names that is read.
const MAX_BYTES: u64 = 4 << 20;

/// The grammar of the line that is completed; completers are given the current word only.
static GRAMMAR: OnceLock<fn() -> Command> = OnceLock::new();

/// Answers a shell that asks for candidates; `false` when this is an ordinary run. `grammar` is that
/// of the whole command line.
///
/// # Errors
/// An unknown shell, or an answer that cannot be written.
pub fn complete_if_requested(
    grammar: fn() -> Command,
    arguments: &[OsString],
    environment: &dyn Environment,
) -> Result<bool, CommandError> {
    if environment.var(VARIABLE).is_none_or(|shell| shell.is_empty()) {
        return Ok(false);
    }
    CompleteEnv::with_factory(*GRAMMAR.get_or_init(|| grammar))
        .shells(shell_quoting::SHELLS)
        .var(VARIABLE)
        .bin("toolhost")
        .completer("toolhost")
        .try_complete(arguments.iter().cloned(), Some(&environment.cwd()))
        .map_err(|error| Error::usage(parse_errors::message(&error)).into())
}

/// Candidates for a tool.
pub fn tools(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().tools)
}

/// Candidates for an argument of the tool that is being called: `key=`.
pub fn arguments(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let grammar = GRAMMAR.get().map(|grammar| grammar());
    let Some((tool, given)) = grammar.and_then(|grammar| call_on_line(&grammar, &words)) else {
        return Vec::new();
    };
    let known = known_names();
    let keys = find_by_name(&known.arguments, tool).cloned().unwrap_or_default();
    let left = keys.into_iter().filter(|(key, _)| {
        let is_key = |word: &&str| word.split_once('=').is_some_and(|(k, _)| k == key);
        !given.iter().any(is_key)
    });
    candidates(current, left.map(|(key, about)| (key + "=", about)).collect())
}

/// Candidates for a server.
pub fn servers(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().servers)
}

/// Candidates for a prompt.
pub fn prompts(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().prompts)
}

/// Candidates for a tool or a server.
pub fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut known = known_names();
    known.tools.extend(known.servers);
    candidates(current, known.tools)
}

/// Candidates for a call of the past.
pub fn calls(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, past_calls().unwrap_or_default())
}

/// The newest calls, each with its time and tool.
fn past_calls() -> Option<CandidateNames> {
    let environment = ProcessEnvironment;
    let files = options(std::env::args_os()).files;
    let configuration = config::load(&files, &assembly::kind_words(), &environment);
    let state_dir = environment.state_dir();
    let location = assembly::record_location(
        &configuration.history,
        history::log::FILE,
        state_dir.as_deref(),
    )?;
    let lines = ReverseLines::all(&location).ok()?;
    let found = history::read::newest(lines, &CallFilter::default(), MAX_CALLS).ok()?;
    let about = |entry: &history::HistoryEntry| {
        let about = format!("{} {}", records::local_time(entry.unix), entry.tool);
        text::safe_line(&about).into_owned()
    };
    let mut names: CandidateNames =
        found.entries.iter().map(|entry| (entry.id.clone(), about(entry))).collect();
    names.insert("last".to_owned(), "the newest call".to_owned());
    names.retain(|name, _| is_word(name));
    Some(names)
}

/// Candidates for a saved call.
pub fn saved_calls(current: &OsStr) -> Vec<CompletionCandidate> {
    let saved = SavedCalls::open(ProcessEnvironment.config_dir().as_deref());
    let saved = saved.map(|saved| saved.calls).unwrap_or_default();
    let about = |call: &SavedCall| text::safe_line(&call.command_words().join(" ")).into_owned();
    candidates(current, saved.iter().map(|(name, call)| (name.clone(), about(call))).collect())
}

/// Candidates for an editor; a file is completed by the shell.
pub fn editors(current: &OsStr) -> Vec<CompletionCandidate> {
    let editors = EDITORS.iter().map(|e| (e.name.to_owned(), e.title.to_owned()));
    candidates(current, editors.collect())
}

/// Candidates for a profile.
pub fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().profiles)
}

fn candidates(current: &OsStr, names: CandidateNames) -> Vec<CompletionCandidate> {
    let start = current.to_string_lossy();
    let plain = shell_quoting::unquoted(&start);
    names
        .into_iter()
        .filter(|(name, _)| name.starts_with(&*start) || name.starts_with(&plain))
        .map(|(name, about)| {
            let about = (!about.is_empty()).then(|| about.into());
            CompletionCandidate::new(name).help(about)
        })
        .collect()
}

/// Names, each with a word about it.
type CandidateNames = BTreeMap<String, String>;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct KnownNames {
    tools: CandidateNames,
    /// The arguments of each tool.
    arguments: BTreeMap<String, CandidateNames>,
    /// The prompts of servers, each with its server.
    prompts: CandidateNames,
    servers: CandidateNames,
    profiles: CandidateNames,
}

/// Everything that is known without contacting a server; nothing when the configuration is
/// unusable.
fn known_names() -> KnownNames {
    let environment: Arc<dyn Environment> = Arc::new(ProcessEnvironment);
    // A completer is given the current word only.
    let options = options(std::env::args_os());
    let is_fresh = std::env::args_os().any(|word| word == "--fresh");
    let assemble = |options: &AssemblyOptions| {
        let loaded = assembly::read(options, environment.as_ref())?;
        let locator = HostLocator::new(options.clone(), Arc::clone(&environment), is_fresh);
        let socket = locator.socket(&loaded);
        assembly::build(loaded, options, &environment, FrontEnd::headless()).map(|a| (a, socket))
    };
    let profile = options.profile.clone();
    // A profile may be half typed.
    let assembly =
        assemble(&options).or_else(|_| assemble(&AssemblyOptions { profile: None, ..options }));
    match assembly {
        Ok((assembly, socket)) => {
            let profile = profile.and_then(|name| assembly.configuration.profiles.get(&name));
            collect_names(&assembly, socket, environment.as_ref(), profile)
        }
        Err(_) => KnownNames::default(),
    }
}

/// The tool called on the line that is being completed, and the words after it.
fn call_on_line<'a>(command: &Command, words: &'a [String]) -> Option<(&'a str, Vec<&'a str>)> {
    let call = command.find_subcommand("call")?;
    let takes_value = |flag: &str| {
        let mut all = command.get_arguments().chain(call.get_arguments());
        all.any(|argument| {
            let long = argument.get_long().is_some_and(|long| flag == format!("--{long}"));
            let short = argument.get_short().is_some_and(|short| flag == format!("-{short}"));
            (long || short) && argument.get_action().takes_values()
        })
    };
    // The line stands after `--`, and begins with the program.
    let mut line = words.iter().map(String::as_str).skip_while(|word| *word != "--").skip(2);
    let mut plain = Vec::new();
    while let Some(word) = line.next() {
        if !word.starts_with('-') {
            plain.push(word);
        } else if takes_value(word) {
            line.next();
        }
    }
    match plain.split_first()? {
        (&"call" | &"invoke", rest) => {
            rest.split_first().map(|(tool, given)| (*tool, given.to_vec()))
        }
        _ => None,
    }
}

/// The entry of a tool, however its name is written.
fn find_by_name<'a, T>(all: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let plain = name.replace("__", "-").replace(['.', '/', ':'], "-");
    let mut bare = all.iter().filter(|(full, _)| {
        full.strip_suffix(name).is_some_and(|component| component.ends_with('-'))
    });
    all.get(name).or_else(|| all.get(&plain)).or_else(|| match (bare.next(), bare.next()) {
        (Some((_, only)), None) => Some(only),
        _ => None,
    })
}

/// The files named on the line that is being completed.
fn options(words: impl Iterator<Item = OsString>) -> AssemblyOptions {
    let mut options = AssemblyOptions::default();
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let list = match flag.as_str() {
            "--tools" | "--host-tools" => &mut options.files.tools,
            "--mcp" => &mut options.files.servers,
            "--profile" => {
                options.profile = value.or_else(|| words.next());
                continue;
            }
            _ => continue,
        };
        list.extend(value.or_else(|| words.next()).map(PathBuf::from));
    }
    options
}

fn collect_names(
    assembly: &Assembly,
    socket: Option<PathBuf>,
    environment: &dyn Environment,
    profile: Option<&ProfileSpec>,
) -> KnownNames {
    let configuration = &assembly.configuration;
    let mut known = read(environment, configuration);
    if let Some(profile) = profile {
        known.tools.retain(|name, server| profile_includes(profile, name, server));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        let mut declared = runtime.block_on(assembly.host.catalogue(&ListScope::Declared));
        declared.tools.extend(runtime.block_on(connected_tools(socket)));
        declared.tools = assembly.host.masked_definitions(&declared.tools);
        known.tools.extend(tool_names(&declared));
        let arguments = declared.tools.iter().take(MAX_NAMES);
        known.arguments.extend(arguments.map(|tool| (tool.name.full(), keys(tool))));
    }
    for server in &configuration.servers {
        let about = server.description.as_deref().map(views::first_sentence).unwrap_or_default();
        known.servers.insert(server.name.clone(), text::safe_line(&about).into_owned());
    }
    known.profiles =
        configuration.profiles.keys().map(|name| (name.clone(), String::new())).collect();
    known.tools.retain(|name, _| is_word(name));
    known.servers.retain(|name, _| is_word(name));
    known.prompts.retain(|name, _| is_word(name));
    known
}

/// Whether a profile shows a tool of which only the names are kept.
fn profile_includes(profile: &ProfileSpec, full: &str, server: &str) -> bool {
    let tool = full.strip_prefix(server).and_then(|rest| rest.strip_prefix('-')).unwrap_or(full);
    let (name, origin) = (ToolName::of(server, tool), Origin::Server(server.to_owned()));
    query::is_in_profile(profile, &ToolDefinition::new(name, ToolSource::Mcp, "mcp", origin))
}

fn tool_names(catalogue: &Catalogue) -> CandidateNames {
    let tools = catalogue.tools.iter().take(MAX_NAMES);
    tools
        .map(|tool| {
            let text = tool.description.as_deref().unwrap_or_default();
            let about = views::first_sentence(text);
            (tool.name.full(), text::cut(&text::safe_line(&about), 80).into_owned())
        })
        .filter(|(name, _)| is_word(name))
        .collect()
}

/// The arguments of a tool.
fn keys(tool: &ToolDefinition) -> CandidateNames {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten().take(MAX_KEYS);
    properties
        .filter(|(key, _)| is_word(key) && !key.contains('='))
        .map(|(key, schema)| {
            let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            let about = views::first_sentence(text);
            (key.clone(), text::cut(&text::safe_line(&about), 80).into_owned())
        })
        .collect()
}

/// Whether a name can be put on a command line, quoted where that has to be.
fn is_word(name: &str) -> bool {
    let is_other_space = |c: char| c.is_whitespace() && c != ' ';
    !name.is_empty()
        && !name.starts_with('-')
        && name.trim() == name
        && !name.chars().any(|c| is_other_space(c) || c.is_control() || text::is_invisible(c))
}

/// Keeps the names of a listing for the next completion. A failure costs only completions.
pub fn save_tools(
    environment: &dyn Environment,
    configuration: &Configuration,
    catalogue: &Catalogue,
) {
    let remote: CandidateNames = catalogue
        .tools
        .iter()
        .filter(|tool| tool.source == ToolSource::Mcp)
        .take(MAX_NAMES)
        .map(|tool| (tool.name.full(), tool.name.component().unwrap_or_default().to_owned()))
        .collect();
    if catalogue.servers.is_empty() {
        return;
    }
    let before = read(environment, configuration);
    // The names of a server that did not answer this time are not forgotten.
    let answered: Vec<&str> = catalogue
        .servers
        .iter()
        .filter(|server| server.error.is_none() && !server.is_partial)
        .map(|server| server.name.as_str())
        .collect();
    let mut now = KnownNames { prompts: before.prompts.clone(), ..KnownNames::default() };
    for (name, server) in &before.tools {
        if !answered.contains(&server.as_str()) {
            now.tools.insert(name.clone(), server.clone());
            let keys = before.arguments.get(name).cloned().unwrap_or_default();
            now.arguments.insert(name.clone(), keys);
        }
    }
    now.tools.extend(remote);
    let listed =
        catalogue.tools.iter().filter(|tool| tool.source == ToolSource::Mcp).take(MAX_NAMES);
    now.arguments.extend(listed.map(|tool| (tool.name.full(), keys(tool))));
    save(environment, configuration, &before, &now);
}

/// Keeps the names of the prompts of a listing for the next completion.
pub fn save_prompts(
    environment: &dyn Environment,
    configuration: &Configuration,
    listed: &Offerings<Prompt>,
) {
    let before = read(environment, configuration);
    let answered = |server: &str| {
        let known = listed.servers.iter().find(|listing| listing.name == server);
        known.is_some_and(|listing| listing.error.is_none() && !listing.is_partial)
    };
    let mut now = before.clone();
    // The names of a server that did not answer this time are not forgotten.
    now.prompts.retain(|_, server| !answered(server));
    let names = listed.items.iter().map(|prompt| &prompt.name).take(MAX_NAMES);
    now.prompts.extend(names.map(|n| (n.full(), n.component().unwrap_or_default().to_owned())));
    save(environment, configuration, &before, &now);
}

fn save(
    environment: &dyn Environment,
    configuration: &Configuration,
    before: &KnownNames,
    now: &KnownNames,
) {
    if now == before {
        return;
    }
    let Some(path) = path(environment, configuration) else { return };
    let kept = json!({
        "tools": now.tools,
        "arguments": now.arguments,
        "prompts": now.prompts,
    });
    if let Some(directory) = path.parent()
        && private_file::make_own_directory(directory).is_ok()
    {
        // A cache that cannot be written is a slower or poorer completion and nothing else.
        let _unwritten =
            atomic_file::replace(&path, kept.to_string().as_bytes(), FileMode::Private);
    }
}

/// The names kept for these configuration files, each with its server.
fn read(environment: &dyn Environment, configuration: &Configuration) -> KnownNames {
    let mut known = KnownNames::default();
    let Some(path) = path(environment, configuration) else { return known };
    if std::fs::metadata(&path).is_ok_and(|found| found.len() > MAX_BYTES) {
        return known;
    }
    let Ok(text) = std::fs::read_to_string(&path) else { return known };
    let kept: Value = serde_json::from_str(&text).unwrap_or_default();
    let tools = kept.get("tools").and_then(Value::as_object);
    for (name, server) in tools.into_iter().flatten().take(MAX_NAMES) {
        let server = server.as_str().unwrap_or_default();
        known.tools.insert(name.clone(), server.to_owned());
        let keys = kept.pointer("/arguments").and_then(|all| all.get(name)?.as_object());
        let keys = keys.into_iter().flatten().take(MAX_KEYS).filter(|(key, _)| is_word(key));
        let text = |about: &Value| about.as_str().unwrap_or_default().to_owned();
        let keys = keys.map(|(key, about)| (key.clone(), text(about))).collect();
        known.arguments.insert(name.clone(), keys);
    }
    let prompts = kept.get("prompts").and_then(Value::as_object);
    for (name, server) in prompts.into_iter().flatten().take(MAX_NAMES) {
        let server = server.as_str().unwrap_or_default();
        known.prompts.insert(name.clone(), server.to_owned());
    }
    known
}

/// One file for each set of configuration files, so that projects do not mix.
fn path(environment: &dyn Environment, configuration: &Configuration) -> Option<PathBuf> {
    let mut hash = Sha256::new();
    for file in &configuration.files {
        hash.update(file.path.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    let mut name = String::from("names-");
    for byte in hash.finalize().iter().take(8) {
        write!(name, "{byte:02x}").ok()?;
    }
    Some(environment.cache_dir()?.join(name + ".json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::ServerListing;
    use crate::config::environment::FixedEnvironment;
    use crate::config::spec::{FileRole, Layer, LoadedFile};

    fn files(path: &str) -> Configuration {
        let file = LoadedFile {
            path: PathBuf::from(path),
            role: FileRole::Servers,
            layer: Layer::Project,
        };
        Configuration { files: vec![file], ..Configuration::default() }
    }

    fn catalogue(tools: &[(&str, &str)], servers: &[(&str, bool)]) -> Catalogue {
        let tools = tools.iter().map(|(server, tool)| {
            let origin = Origin::Server((*server).to_owned());
            let name = ToolName::of(*server, *tool);
            Arc::new(ToolDefinition::new(name, ToolSource::Mcp, "mcp", origin))
        });
        let servers = servers.iter().map(|(name, ok)| ServerListing {
            name: (*name).to_owned(),
            error: (!ok).then(|| Error::unreachable("gone")),
            is_partial: false,
        });
        Catalogue { tools: tools.collect(), servers: servers.collect(), ..Catalogue::default() }
    }

    fn kept(environment: &dyn Environment, configuration: &Configuration) -> Vec<String> {
        read(environment, configuration).tools.into_keys().collect()
    }

    #[test]
    fn names_are_kept_per_configuration_and_per_server() {
        let dir = tempfile::tempdir().unwrap();
        let environment = FixedEnvironment {
            root: Some(dir.path().to_path_buf()),
            ..FixedEnvironment::default()
        };
        let here = files("/here/mcp.yaml");
        let both = [("a", true), ("b", true)];
        save_tools(&environment, &here, &catalogue(&[("a", "x"), ("b", "y")], &both));
        assert_eq!(kept(&environment, &here), ["a-x", "b-y"]);
        assert_eq!(kept(&environment, &files("/there/mcp.yaml")), [""; 0]);
        // `a` answers with another tool, `b` does not answer.
        let one = [("a", true), ("b", false)];
        save_tools(&environment, &here, &catalogue(&[("a", "z")], &one));
        assert_eq!(kept(&environment, &here), ["a-z", "b-y"]);
    }

    #[test]
    fn the_tool_of_a_line_is_found_among_its_options() {
        let line = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let words = line("toolhost -- toolhost --mcp x -v call --timeout 5s demo-add a=1 --yes b");
        let grammar = <crate::cli::args::Cli as clap::CommandFactory>::command();
        assert_eq!(call_on_line(&grammar, &words), Some(("demo-add", vec!["a=1", "b"])));
        assert_eq!(call_on_line(&grammar, &line("toolhost -- toolhost call")), None);
        assert_eq!(call_on_line(&grammar, &line("toolhost -- toolhost inspect x y")), None);
    }

    #[test]
    fn a_tool_is_found_however_its_name_is_written() {
        let all = BTreeMap::from([("demo-add".to_owned(), 1), ("now".to_owned(), 2)]);
        for name in ["demo-add", "demo.add", "demo/add", "demo:add", "demo__add", "add"] {
            assert_eq!(find_by_name(&all, name), Some(&1), "{name}");
        }
        assert_eq!(find_by_name(&all, "dd"), None);
    }

    #[test]
    fn the_arguments_of_a_server_s_tool_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let environment = FixedEnvironment {
            root: Some(dir.path().to_path_buf()),
            ..FixedEnvironment::default()
        };
        let mut listed = catalogue(&[("a", "x")], &[("a", true)]);
        Arc::make_mut(&mut listed.tools[0]).input_schema = Arc::new(json!({
            "properties": { "city": { "description": "Where. In words." }, "a\nb": {} }
        }));
        save_tools(&environment, &files("f"), &listed);
        let known = read(&environment, &files("f"));
        assert_eq!(known.arguments["a-x"], CandidateNames::from([("city".into(), "Where".into())]));
    }

    #[test]
    fn a_damaged_file_of_names_is_no_trouble() {
        let dir = tempfile::tempdir().unwrap();
        let environment = FixedEnvironment {
            root: Some(dir.path().to_path_buf()),
            ..FixedEnvironment::default()
        };
        let here = files("/here/mcp.yaml");
        let path = path(&environment, &here).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for text in ["", "{", "[1]", r#"{"tools":{"a":1}}"#] {
            std::fs::write(&path, text).unwrap();
            let _names = kept(&environment, &here);
        }
    }

    #[test]
    fn files_named_on_the_line_are_used() {
        let words = ["toolhost", "--", "toolhost", "--tools", "a", "--mcp=b", "call", "x"];
        let options = options(words.iter().map(OsString::from));
        assert_eq!(options.files.tools, [PathBuf::from("a")]);
        assert_eq!(options.files.servers, [PathBuf::from("b")]);
    }

    #[test]
    fn only_names_that_are_words_are_offered() {
        assert!(is_word("github-search_issues"));
        for name in ["", "-x", " a", "a\u{a0}b", "a\nb", "a\u{1b}[2J", "a\u{202e}b"] {
            assert!(!is_word(name), "{name:?}");
        }
        let names = CandidateNames::from([
            ("ab".to_owned(), "one".to_owned()),
            ("b".to_owned(), String::new()),
        ]);
        let found = candidates(OsStr::new("a"), names);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].get_value(), "ab");
    }
}
