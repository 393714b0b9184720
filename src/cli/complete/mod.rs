//! Completion candidates for the command line that is being completed: names of tools, arguments and their
//! values, prompts, servers and profiles.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use clap_complete::{CompleteEnv, CompletionCandidate};
use serde_json::Value;

use super::args::Cli;
use super::host_sockets::connected_tools;
use super::options::GlobalOptions;
use super::output::streams::CommandError;
use super::{grammar, records, shells};
use crate::assembly::host_locator::HostLocator;
use crate::assembly::{self, Assembly, AssemblyOptions, FrontEnd};
use crate::catalogue::query;
use crate::config::editors::EDITORS;
use crate::config::environment::{Environment, ProcessEnvironment};
use crate::config::saved_calls::{SavedCall, SavedCalls};
use crate::config::secrets::names_secret;
use crate::config::spec::ProfileSpec;
use crate::host::example::{resolve, type_of};
use crate::host::request::ListScope;
use crate::model::{CallFilter, Error, Origin, ToolDefinition, ToolName, ToolSource};
use crate::util::segments::ReverseLines;
use crate::util::text;
use crate::{config, history};
pub use known_names::update_names;
use known_names::{CandidateNames, KnownArgument, KnownNames, MAX_NAMES, read, summary};

mod known_names;

pub const VARIABLE: &str = "COMPLETE";
const MAX_CALLS: usize = 50;
/// Answers a shell that requests candidates; returns `false` for an ordinary run.
pub fn complete_if_requested(
    arguments: &[OsString],
    environment: &dyn Environment,
) -> Result<bool, CommandError> {
    if environment.var(VARIABLE).is_none_or(|shell| shell.is_empty()) {
        return Ok(false);
    }
    CompleteEnv::with_factory(Cli::command)
        .shells(shells::SHELLS)
        .var(VARIABLE)
        .bin("toolhost")
        .completer("toolhost")
        .try_complete(arguments.iter().cloned(), Some(&environment.cwd()))
        .map_err(|error| Error::usage(grammar::message(&error)).into())
}

pub fn tools(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().tools)
}

/// Candidates for an argument of the tool being called: `key=`, followed by the values listed in
/// its schema.
pub fn arguments(current: &OsStr) -> Vec<CompletionCandidate> {
    let find = || {
        let line = CompletedLine::of_process()?;
        let saved;
        let tool = match line.command.as_str() {
            "run" => {
                saved = SavedCalls::open(ProcessEnvironment.config_dir().as_deref()).ok()?;
                &saved.calls.get(line.name()?)?.tool
            }
            _ => line.name()?,
        };
        let names = known_names();
        let arguments = find_by_name(&names.arguments, tool)?;
        Some(argument_candidates(current, arguments, &line.given_keys()))
    };
    find().unwrap_or_default()
}

pub fn prompt_arguments(current: &OsStr) -> Vec<CompletionCandidate> {
    let find = || {
        let line = CompletedLine::of_process()?;
        let names = known_names();
        let arguments = find_by_name(&names.prompt_arguments, line.name()?)?;
        Some(argument_candidates(current, arguments, &line.given_keys()))
    };
    find().unwrap_or_default()
}

/// Keys that are not given yet, or the values of the one being typed.
fn argument_candidates(
    current: &OsStr,
    arguments: &[KnownArgument],
    given: &[&str],
) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    if let Some((key, _)) = typed.split_once('=') {
        let argument = arguments.iter().filter(|argument| argument.name == key);
        // In the order of the schema, with the default first.
        let values = argument.flat_map(|argument| &argument.values);
        let values = values.map(|value| format!("{key}={value}"));
        let matching = values.filter(|word| word.starts_with(&*typed));
        return matching.map(CompletionCandidate::new).collect();
    }
    let left = arguments.iter().filter(|argument| !given.contains(&argument.name.as_str()));
    let left = left.map(|argument| (format!("{}=", argument.name), argument.about.clone()));
    candidates(current, left.collect())
}

pub fn servers(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().servers)
}

pub fn prompts(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().prompts)
}

pub fn resources(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().resources)
}

pub fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names = known_names();
    names.tools.extend(names.servers);
    candidates(current, names.tools)
}

pub fn calls(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, past_calls().unwrap_or_default())
}

fn past_calls() -> Option<CandidateNames> {
    let environment = ProcessEnvironment;
    let files = CompletedLine::of_process()?.global.load_request(false);
    let configuration = config::load(&files, &assembly::kind_words(), &environment);
    let state_dir = environment.state_dir();
    let location = assembly::record_location(
        &configuration.history,
        history::log::FILE,
        state_dir.as_deref(),
    )?;
    let lines = ReverseLines::all(&location).ok()?;
    let page = history::read::newest(lines, &CallFilter::default(), MAX_CALLS).ok()?;
    let about = |entry: &history::HistoryEntry| {
        let about = format!("{} {}", records::local_time(entry.unix), entry.tool);
        text::safe_line(&about).into_owned()
    };
    let mut names: CandidateNames =
        page.entries.iter().map(|entry| (entry.id.clone(), about(entry))).collect();
    names.insert("last".to_owned(), "the newest call".to_owned());
    Some(names)
}

pub fn saved_calls(current: &OsStr) -> Vec<CompletionCandidate> {
    let saved = SavedCalls::open(ProcessEnvironment.config_dir().as_deref());
    let saved = saved.map(|saved| saved.calls).unwrap_or_default();
    let about = |call: &SavedCall| text::safe_line(&call.command_words().join(" ")).into_owned();
    candidates(current, saved.iter().map(|(name, call)| (name.clone(), about(call))).collect())
}

/// Candidates for an editor; the shell completes files.
pub fn editors(current: &OsStr) -> Vec<CompletionCandidate> {
    let editors = EDITORS.iter().map(|e| (e.name.to_owned(), e.title.to_owned()));
    candidates(current, editors.collect())
}

pub fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, known_names().profiles)
}

fn candidates(current: &OsStr, names: CandidateNames) -> Vec<CompletionCandidate> {
    let start = current.to_string_lossy();
    names
        .into_iter()
        // One that looks like an option would be taken for one.
        .filter(|(name, _)| name.starts_with(&*start) && !name.starts_with('-'))
        .map(|(name, about)| {
            let about = (!about.is_empty()).then(|| about.into());
            CompletionCandidate::new(name).help(about)
        })
        .collect()
}

/// Everything known without contacting a server; nothing if the configuration is unusable.
fn known_names() -> KnownNames {
    let Some(CompletedLine { global, .. }) = CompletedLine::of_process() else {
        return KnownNames::default();
    };
    let environment: Arc<dyn Environment> = Arc::new(ProcessEnvironment);
    let options = global.assembly_options(false);
    let assemble = |options: &AssemblyOptions| {
        let loaded = assembly::read(options, environment.as_ref())?;
        let locator = HostLocator {
            options: options.clone(),
            environment: Arc::clone(&environment),
            is_fresh: global.needs_own_servers(),
        };
        let socket = locator.socket(&loaded);
        assembly::build(loaded, options, &environment, FrontEnd::headless()).map(|a| (a, socket))
    };
    let profile = options.profile.clone();
    // The profile may be incomplete.
    let assembly =
        assemble(&options).or_else(|_| assemble(&AssemblyOptions { profile: None, ..options }));
    let Ok((assembly, socket)) = assembly else { return KnownNames::default() };
    let profile = profile.and_then(|name| assembly.configuration.profiles.get(&name));
    collect_names(&assembly, socket, environment.as_ref(), profile)
}

fn collect_names(
    assembly: &Assembly,
    socket: Option<PathBuf>,
    environment: &dyn Environment,
    profile: Option<&ProfileSpec>,
) -> KnownNames {
    let configuration = &assembly.configuration;
    let mut names = read(environment, configuration);
    if let Some(profile) = profile {
        names.tools.retain(|name, server| profile_includes(profile, name, server));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        let mut declared = runtime.block_on(assembly.host.catalogue(&ListScope::Declared));
        declared.tools.extend(runtime.block_on(connected_tools(socket)));
        declared.tools = assembly.host.masked_definitions(&declared.tools);
        for tool in declared.tools.iter().take(MAX_NAMES) {
            let about = summary(tool.description.as_deref().unwrap_or_default());
            names.tools.insert(tool.name.full(), about);
            names.arguments.insert(tool.name.full(), known_names::arguments(tool));
        }
    }
    for server in &configuration.servers {
        let about = summary(server.description.as_deref().unwrap_or_default());
        names.servers.insert(server.name.clone(), about);
    }
    names.profiles =
        configuration.profiles.keys().map(|name| (name.clone(), String::new())).collect();
    names
}

/// Whether a profile contains a tool of which only the name is cached.
fn profile_includes(profile: &ProfileSpec, full: &str, server: &str) -> bool {
    let tool = full.strip_prefix(server).and_then(|rest| rest.strip_prefix('-')).unwrap_or(full);
    let (name, origin) = (ToolName::of(server, tool), Origin::Server(server.to_owned()));
    query::is_in_profile(profile, &ToolDefinition::new(name, ToolSource::Mcp, "mcp", origin))
}

/// A line as far as it can be parsed.
struct CompletedLine {
    global: GlobalOptions,
    /// The innermost command.
    command: String,
    matches: ArgMatches,
}

impl CompletedLine {
    /// The line of this process; completers only receive the current word.
    fn of_process() -> Option<Self> {
        Self::read(std::env::args_os())
    }

    /// The line follows `--`, and starts with the program.
    fn read(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let line = words.skip_while(|word| word != "--").skip(1);
        let mut matches = Cli::command().ignore_errors(true).try_get_matches_from(line).ok()?;
        let global = GlobalOptions::from_arg_matches(&matches).ok()?;
        let mut command = String::new();
        while let Some((name, inner)) = matches.remove_subcommand() {
            (command, matches) = (name, inner);
        }
        Some(Self { global, command, matches })
    }

    /// The name whose arguments are completed.
    fn name(&self) -> Option<&str> {
        self.matches.try_get_one::<String>("name").ok()?.map(String::as_str)
    }

    /// The keys already given after the name, as `key=value` or `key:=json`.
    fn given_keys(&self) -> Vec<&str> {
        let words = self.matches.try_get_many::<String>("words").ok().flatten();
        let keys = words.into_iter().flatten().filter_map(|word| word.split_once('='));
        keys.map(|(key, _)| key.trim_end_matches(':')).collect()
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

const MAX_VALUES: usize = 50;

fn of_property(root: &Value, key: &str, property: &Value) -> Vec<String> {
    let property = resolve(root, property, 0);
    if names_secret(key) || property.get("writeOnly").is_some_and(|is| is == true) {
        return Vec::new();
    }
    let mut values: Vec<String> = property.get("default").and_then(word).into_iter().collect();
    choices(root, property, &mut values);
    // An optional choice is one of several schemas, such as a choice or null.
    for key in ["anyOf", "oneOf", "allOf"] {
        let parts = property.get(key).and_then(Value::as_array);
        for part in parts.into_iter().flatten().take(MAX_VALUES) {
            choices(root, resolve(root, part, 0), &mut values);
        }
    }
    values.truncate(MAX_VALUES);
    values
}

fn choices(root: &Value, schema: &Value, values: &mut Vec<String>) {
    let schema = resolve(root, schema, 0);
    let listed = schema.get("enum").and_then(Value::as_array);
    let yes_or_no = [Value::Bool(true), Value::Bool(false)];
    let is_bool = type_of(schema) == Some("boolean") && listed.is_none();
    let named = listed.into_iter().flatten().chain(schema.get("const"));
    for value in named.chain(yes_or_no.iter().filter(|_| is_bool)).take(MAX_VALUES) {
        values.extend(word(value).filter(|text| !values.contains(text)));
    }
}

/// A value that can be written after `key=`: not a list, object or null, and not a text that starts
/// with the `@` of a file.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.starts_with('@') => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {

    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_begin_as_typed_are_offered() {
        let names = CandidateNames::from([
            ("ab".to_owned(), "one".to_owned()),
            ("b".to_owned(), String::new()),
        ]);
        let found = candidates(OsStr::new("a"), names);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].get_value(), "ab");
    }

    #[test]
    fn keys_are_offered_first_and_then_their_values() {
        let unit = KnownArgument {
            name: "unit".to_owned(),
            about: "Which".to_owned(),
            values: vec!["metric".to_owned(), "imperial".to_owned()],
        };
        let city = KnownArgument { name: "city".to_owned(), ..KnownArgument::default() };
        let known = [city, unit];
        let offered = |typed: &str, given: &[&str]| -> Vec<String> {
            let found = argument_candidates(OsStr::new(typed), &known, given);
            found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(offered("", &["unit"]), ["city="]);
        assert_eq!(offered("unit=", &["unit"]), ["unit=metric", "unit=imperial"]);
        assert_eq!(offered("unit=i", &["unit"]), ["unit=imperial"]);
        assert!(offered("city=O", &["city"]).is_empty() && offered("x=", &[]).is_empty());
    }

    fn line(text: &str) -> CompletedLine {
        let words = format!("toolhost -- toolhost {text}");
        CompletedLine::read(words.split(' ').map(OsString::from)).unwrap()
    }

    #[test]
    fn the_names_of_a_line_are_found_among_its_options() {
        for (text, command, name, given) in [
            ("--mcp x -v call --timeout 5s demo-add a=1 --yes b:=2", "call", "demo-add", "a b"),
            ("bench -n 5 demo-add a=1 -c 2", "bench", "demo-add", "a"),
            ("prompts get --server demo greet name=x=y", "get", "greet", "name"),
            ("invoke call a=1 c", "call", "call", "a"),
            ("run --json again", "run", "again", ""),
        ] {
            let line = line(text);
            assert_eq!((&*line.command, line.name()), (command, Some(name)), "{text}");
            assert_eq!(line.given_keys().join(" "), given, "{text}");
        }
        assert_eq!(line("call").name(), None);
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
    fn files_named_on_the_line_are_used() {
        for text in ["--tools a --mcp=b call x", "call --mcp b x --tools a", "--tools a --mcp b x"]
        {
            let global = line(text).global;
            assert_eq!((global.tools, global.mcp), (vec![PathBuf::from("a")], vec!["b".into()]));
        }
    }

    #[test]
    fn choices_yes_or_no_and_defaults_are_values() {
        let root = json!({ "$defs": { "Unit": { "enum": ["metric", "imperial"] } } });
        for (property, values) in [
            (json!({ "enum": ["a", "b"], "default": "b" }), &["b", "a"][..]),
            (json!({ "type": "boolean" }), &["true", "false"]),
            (json!({ "type": "integer", "default": 12 }), &["12"]),
            (json!({ "$ref": "#/$defs/Unit" }), &["metric", "imperial"]),
            (
                json!({ "anyOf": [{ "$ref": "#/$defs/Unit" }, { "type": "null" }] }),
                &["metric", "imperial"],
            ),
            (json!({ "oneOf": [{ "const": 1, "title": "one" }, { "const": 2 }] }), &["1", "2"]),
            (json!({ "enum": [null, ["x"], "@file", 3] }), &["3"]),
            (json!({ "type": "string" }), &[]),
        ] {
            assert_eq!(of_property(&root, "unit", &property), values, "{property}");
        }
        assert!(of_property(&root, "api_key", &json!({ "default": "hunter2" })).is_empty());
    }
}
