//! Readers of bytes from outside, each with what has to hold of it whatever the bytes are.
//!
//! A part of toolhost in builds for fuzzing and for tests, since most of these are not public. That none
//! panics, hangs or takes much memory is what the fuzzer watches; the functions here add the rest. Inputs
//! that once broke something are in `corpus/`, and every run of the tests tries all of them.

#![expect(clippy::panic, reason = "this is how a broken property is told")]
#![expect(clippy::unwrap_used, reason = "what cannot fail here is no finding")]

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::assembly::{Assembly, AssemblyOptions, FrontEnd, assemble, load};
use crate::audit::read::AuditJoiner;
use crate::audit::trace;
use crate::config::consent::store::TrustStore;
use crate::config::discover::LoadRequest;
use crate::config::environment::{Environment, FixedEnvironment};
use crate::config::node::SourceText;
use crate::config::spec::ProtocolChoice;
use crate::config::suite::Suite;
use crate::config::{editors, parse};
use crate::formats::{CallAnswer, ModelFormat};
use crate::history::HistoryEntry;
use crate::host::form::{FormNode, ResolvedSchema};
use crate::host::request::CallRequest;
use crate::host::{arguments, example, validate};
use crate::mcp::connection::{ConnectOptions, Connection, RequestOptions, WireOpener};
use crate::mcp::message::{self, Incoming, ParsedInput, RpcMessage};
use crate::mcp::transport::http::sse::{SseItem, SseParser};
use crate::mcp::wire::{Arrival, FrameKind, OutgoingFrame, ProcessInfo, Wire};
use crate::mcp::{calling, listing};
use crate::model::{
    Era, Error, ErrorPhase, EventSink, JsonObject, NoQuestionHandler, Prompt, Resource,
    ResourceTemplate,
};
use crate::serve::catalogue_server::ServedIdentity;
use crate::serve::catalogue_server::{CatalogueServer, ClientRegistry, ServeSettings};
use crate::serve::listen::oauth::JsonWebKey;
use crate::serve::listen::oauth::UncheckedToken;
use crate::serve::listen::stream::serve_stream;
use crate::serve::replay::{self, ServerRecording};
use crate::stats::SpoolRow;
use crate::util::jq::budget::JqLimits;
use crate::util::segments::RecordLine;
use crate::util::{jq, json as json_text, pattern, text, timestamp, units, uri_template};
use crate::{FunctionTool, Structured, ToolContext, ToolHost, bench, cli, tui};

/// A reader and what has to hold of it.
pub struct Target {
    /// The name of its corpus.
    pub name: &'static str,
    /// Panics when something does not hold.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "message", run: message_line },
    Target { name: "sse", run: event_stream },
    Target { name: "session", run: session },
    Target { name: "served", run: served },
    Target { name: "uri", run: uri },
    Target { name: "config", run: config },
    Target { name: "entries", run: entries },
    Target { name: "untrusted", run: untrusted },
    Target { name: "editors", run: editor_files },
    Target { name: "state", run: state_files },
    Target { name: "records", run: records },
    Target { name: "recording", run: recording },
    Target { name: "jq", run: jq_filter },
    Target { name: "schema", run: schema },
    Target { name: "openapi", run: openapi },
    Target { name: "dialects", run: dialects },
    Target { name: "calculator", run: calculator },
    Target { name: "token", run: token },
    Target { name: "words", run: words },
    Target { name: "text", run: shown_text },
];

/// The value of a variable that no file may have without consent.
const CANARY: &str = "canary-7c1f0e";

/// The input as text, and what is behind its first line with `---`.
fn halves(data: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(data).into_owned();
    match text.split_once("\n---\n") {
        Some((first, second)) => (first.to_owned(), second.to_owned()),
        None => (text, String::new()),
    }
}

/// Runs something whose clock jumps whenever everybody waits.
fn without_waiting<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(future)
}

/// A directory of this process.
fn room() -> &'static Path {
    static ROOM: OnceLock<PathBuf> = OnceLock::new();
    ROOM.get_or_init(|| {
        let room = std::env::temp_dir().join(format!("toolhost-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(room.join("state")).unwrap();
        room.canonicalize().unwrap()
    })
}

fn write(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = room().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn environment() -> FixedEnvironment {
    FixedEnvironment {
        vars: BTreeMap::from([("CANARY".to_owned(), CANARY.to_owned())]),
        cwd: room().to_path_buf(),
        root: None,
    }
}

fn message_line(data: &[u8]) {
    let messages = match message::read(&Bytes::copy_from_slice(data)) {
        ParsedInput::Messages(messages, _) => messages,
        ParsedInput::NonMessage(_) | ParsedInput::Unreadable(_) => {
            let object = serde_json::from_slice::<JsonObject>(data);
            assert!(object.is_err(), "an object was not read: {object:?}");
            return;
        }
        ParsedInput::Broken(_) => return,
    };
    for one in &messages {
        let raw = match one {
            RpcMessage::Response { outcome, .. } => outcome.as_ref().ok(),
            RpcMessage::Request { params, .. } | RpcMessage::Notification { params, .. } => {
                params.as_ref()
            }
        };
        if let Some(raw) = raw {
            // Depth is limited where a tree is made.
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(raw.get());
            assert!(is_json.is_ok() || raw.parse().is_err(), "{}", raw.get());
        }
    }
    if let (Ok(object), [one]) = (serde_json::from_slice::<JsonObject>(data), &messages[..]) {
        let id = match one {
            RpcMessage::Response { id, .. } | RpcMessage::Request { id, .. } => Some(id),
            RpcMessage::Notification { .. } => None,
        };
        let names = data.windows(4).filter(|part| part == b"\"id\"").count();
        if let (Some(id), Some(written), 1) = (id, object.get("id"), names) {
            assert_eq!(id, written);
        }
    }
}

/// The events of a stream, read in pieces, are those that a reader of the whole text sees.
fn event_stream(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else { return };
    let read = |size: usize| {
        let (mut parser, mut items) = (SseParser::new(1 << 20).with_comments(true), Vec::new());
        for chunk in stream.chunks(size) {
            parser.feed(chunk, &mut items).unwrap();
        }
        items
    };
    let items = read(usize::from(*size).max(1));
    assert_eq!(items, read(stream.len().max(1)));

    let text = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && text.get(at - 1) == Some(&b'\r') => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            byte => lines.last_mut().unwrap().push(*byte),
        }
    }
    lines.pop();
    let mut data: Option<Vec<u8>> = None;
    let mut all = Vec::new();
    for line in lines {
        if line.is_empty() {
            all.extend(data.take());
        } else if let Some(value) =
            line.strip_prefix(b"data").filter(|rest| rest.is_empty() || rest.starts_with(b":"))
        {
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            let data = match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data
                }
                none => none.insert(Vec::new()),
            };
            data.extend_from_slice(value);
        }
    }
    let events: Vec<Vec<u8>> = items
        .into_iter()
        .filter_map(|item| match item {
            SseItem::Event(event) => Some(event.data.to_vec()),
            SseItem::Retry(_) | SseItem::Comment(_) => None,
        })
        .filter(|data| !data.is_empty())
        .collect();
    all.retain(|data| !data.is_empty());
    assert_eq!(events, all);
}

/// A server that says one line of its script for each message it gets; `$id` is the id of the last request.
struct ScriptedServer {
    script: Mutex<VecDeque<String>>,
    says: Mutex<VecDeque<String>>,
    changed: Notify,
}

#[async_trait]
impl Wire for ScriptedServer {
    async fn send(&self, frame: OutgoingFrame) -> Result<(), Error> {
        let FrameKind::Request { id, .. } = frame.kind else { return Ok(()) };
        // Up to an empty line is what it says to one request.
        let mut script = self.script.lock().unwrap();
        while let Some(line) = script.pop_front().filter(|line| !line.is_empty()) {
            self.says.lock().unwrap().push_back(line.replace("$id", &id.to_string()));
        }
        self.changed.notify_one();
        Ok(())
    }

    async fn receive(&self) -> Arrival {
        loop {
            if let Some(line) = self.says.lock().unwrap().pop_front() {
                let incoming = Incoming::read(line.into());
                return Arrival::Message { incoming, stream_of: None };
            }
            self.changed.notified().await;
        }
    }

    fn set_agreement(&self, _: Era, _: &str) {}

    fn waiting_for(&self, _: &Value) -> Option<String> {
        None
    }

    fn process_info(&self) -> ProcessInfo {
        ProcessInfo::default()
    }

    async fn close(&self) {}
}

/// A client that is told anything ends its handshake, its lists and its call within their limits.
fn session(data: &[u8]) {
    let script = String::from_utf8_lossy(data);
    let server = Arc::new(ScriptedServer {
        script: Mutex::new(script.lines().take(500).map(str::to_owned).collect()),
        says: Mutex::default(),
        changed: Notify::new(),
    });
    let opener: WireOpener = Arc::new(move || Ok(Arc::clone(&server) as Arc<dyn Wire>));
    let options = ConnectOptions {
        server: "srv".to_owned(),
        protocol: ProtocolChoice::Auto,
        cached_era: None,
        start_timeout: Duration::from_secs(30),
        falls_back_on_silence: true,
        roots: Vec::new(),
        events: EventSink::discard(),
        inbox: Arc::new(NoQuestionHandler),
    };
    without_waiting(async {
        let began = tokio::time::Instant::now();
        let Ok(connection) = Connection::open(&opener, options).await else { return };
        let limit = Duration::from_secs(30);
        let tools = listing::tools(&connection, limit).await;
        let _prompts = listing::all::<Prompt>(&connection, limit).await;
        let _resources = listing::all::<Resource>(&connection, limit).await;
        let _templates = listing::all::<ResourceTemplate>(&connection, limit).await;
        for tool in tools.iter().flat_map(|tools| &tools.tools).take(3) {
            let options = RequestOptions::with_timeouts(limit, limit * 2, ErrorPhase::Call);
            let arguments = example::arguments(tool.input_schema.whole());
            let as_task = calling::requires_task(&connection, Some(tool));
            let _result = calling::call(&connection, "t", &arguments, as_task, &options).await;
        }
        connection.close().await;
        assert!(began.elapsed() < Duration::from_mins(15), "it took {:?}", began.elapsed());
    });
}

/// A client that says anything is served until it leaves.
fn served(data: &[u8]) {
    without_waiting(async {
        let clients = ClientRegistry::new();
        let host = clients.attach(ToolHost::builder()).build();
        let echo = async |arguments: Value, _: ToolContext| Ok(Structured(arguments));
        host.register_function(FunctionTool::new("echo", "Repeats", echo)).unwrap();
        let stop = CancellationToken::new();
        let settings = ServeSettings::default();
        let server = CatalogueServer::new(host.clone(), clients, settings, stop.clone());
        let (mut near, far) = tokio::io::duplex(4 << 20);
        let (input, output) = tokio::io::split(far);
        let identity = ServedIdentity { session: "fuzz".to_owned(), is_alone: true };
        let serving = serve_stream(&server, identity, input, output, &stop);
        let client = async {
            near.write_all(data.get(..data.len().min(1 << 20)).unwrap_or_default()).await.unwrap();
            near.shutdown().await.unwrap();
            let mut answers = Vec::new();
            near.read_to_end(&mut answers).await.unwrap();
            answers
        };
        let (_ended, answers) = tokio::join!(serving, client);
        for line in answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let answer: JsonObject = serde_json::from_slice(line).unwrap();
            assert_eq!(answer.get("jsonrpc"), Some(&json!("2.0")));
        }
        host.close().await;
    });
}

/// What a template makes of its variables is among what it matches.
fn uri(data: &[u8]) {
    let (template, uri) = halves(data);
    let _matched = uri_template::matches(&template, &uri);
    let names = uri_template::variables(&template);
    let required = uri_template::required_variables(&template);
    assert!(required.iter().all(|name| names.contains(name)));
    let expanded = uri_template::expand(&template, |_| Some("x"));
    if expanded.len() < 4_096 && template.len() < 4_096 {
        assert!(uri_template::matches(&template, &expanded), "{template:?} makes {expanded:?}");
    }
}

/// A file that is read is the same file as JSON.
fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for name in ["tools.yaml", "mcp.json"] {
        let Ok(read) = parse::parse(&SourceText::new(name, text), text) else { continue };
        let json = read.to_json();
        let written = serde_json::to_string(&json).unwrap();
        let again = parse::parse(&SourceText::new("again.json", &written), &written);
        match again {
            Ok(again) => assert_eq!(again.to_json(), json),
            Err(why) => panic!("{written} cannot be read again: {}", why.message),
        }
    }
    let source = SourceText::new("console.yaml", text);
    let (settings, _) = tui::settings::read(&source, text, tui::theme::Appearance::default());
    drop(settings);
}

/// A host of these two files, as if they were named on the command line.
fn host_of(tools: String, servers: String) -> Result<Assembly, Error> {
    let files = LoadRequest {
        inline_tools: vec![(PathBuf::from("tools.yaml"), tools)],
        inline_servers: vec![(PathBuf::from("mcp.yaml"), servers)],
        ..LoadRequest::default()
    };
    let options = AssemblyOptions { files, ..AssemblyOptions::default() };
    let environment: Arc<dyn Environment> = Arc::new(environment());
    assemble(&options, &environment, FrontEnd::headless())
}

/// Entries of every kind are built, or refused with a reason, and start nothing.
fn entries(data: &[u8]) {
    let (tools, servers) = halves(data);
    let is_written = tools.contains(CANARY) || servers.contains(CANARY);
    without_waiting(async {
        if let Ok(assembly) = host_of(tools, servers) {
            for problem in &assembly.configuration.diagnostics {
                let leaks = !is_written && problem.message.contains(CANARY);
                assert!(!leaks, "{}", problem.message);
            }
            assembly.host.close().await;
        }
    });
}

/// Nothing of a project's files that nobody trusts is expanded.
fn untrusted(data: &[u8]) {
    let (tools, servers) = halves(data);
    write("tools.yaml", tools);
    write("mcp.yaml", servers);
    let environment = environment();
    let request = LoadRequest { project: Some(room().to_path_buf()), ..LoadRequest::default() };
    let (configuration, _) = load(&request, &environment);
    assert!(!configuration.expanded.occur_in(CANARY), "a variable was read without consent");
}

fn editor_files(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for name in ["a.json", "a.toml", "a.yaml"] {
        let _read = editors::parse_file(Path::new(name), text);
        let _found = editors::has_server(Path::new(name), text, "a");
    }
    for name in ["editor.json", "editor.toml", "editor.yaml"] {
        let _servers = editors::read_file(&write(name, text), None, room());
    }
}

/// Files that toolhost wrote itself and somebody changed.
fn state_files(data: &[u8]) {
    let state = room().join("state");
    std::fs::write(TrustStore::file(&state), data).unwrap();
    if let Ok(store) = TrustStore::open(Some(&state)) {
        for project in store.list() {
            let _digest = project.bundle.digest();
        }
    }
    let suite = write("suite.yaml", data);
    if let Err(problems) = Suite::read(&suite) {
        assert!(!problems.is_empty(), "it is refused without a reason");
    }
}

/// Lines of the records: one that is read and written again stays as it is.
fn records(data: &[u8]) {
    let mut audit = AuditJoiner::default();
    for line in data.split(|byte| *byte == b'\n').take(1_000) {
        let _call = audit.push(&RecordLine::Text(line.to_vec()));
        if let Some(entry) = HistoryEntry::parse(line) {
            let again = serde_json::to_vec(&entry).unwrap();
            assert_eq!(HistoryEntry::parse(&again).unwrap().id, entry.id);
        }
        if let Some(row) = SpoolRow::parse(line) {
            let again = SpoolRow::parse(row.line().as_bytes()).unwrap();
            assert_eq!(row.line(), again.line());
        }
    }
}

/// A recording that was not made by toolhost is refused, or answers a client.
fn recording(data: &[u8]) {
    let (trace, client) = halves(data);
    let Ok(read) = trace::read_file(&write("a.trace", trace)) else { return };
    let Ok(recording) = ServerRecording::for_server(&read.items, None) else { return };
    without_waiting(async {
        let output = tokio::io::sink();
        let _ended = replay::serve(recording, false, client.as_bytes(), output, &|_| {}).await;
    });
}

fn jq_filter(data: &[u8]) {
    let (filter, input) = halves(data);
    let input = serde_json::from_str(&input).unwrap_or_else(|_| json!({ "a": [1, "x", null] }));
    let checked = jq::check(&filter);
    let limits = JqLimits { steps: 20_000, time: Duration::from_secs(1), ..JqLimits::default() };
    let result = jq::query_within(&filter, &input, &limits);
    assert!(checked.is_ok() || result.is_err(), "what is no filter gave a result");
}

fn schema(data: &[u8]) {
    let (schema, value) = halves(data);
    let Ok(schema) = serde_json::from_str::<Value>(&schema) else { return };
    let value: Value = serde_json::from_str(&value).unwrap_or_else(|_| json!({ "a": 1 }));
    let _violation = validate::first_violation(&schema, &value);
    let arguments = example::arguments(&schema);
    let _command = example::format_command("t", &schema, &arguments);
    let _coerced = arguments::coerce_text("1", &schema, &schema);
    let resolved = ResolvedSchema::of(&Arc::new(schema));
    let mut form = FormNode::of_object(resolved, value.as_object());
    for row in form.rows() {
        let _label = format!("{row:?}");
    }
    form.add(0);
    form.cycle_choice(1);
    let _value = form.value();
}

fn openapi(data: &[u8]) {
    write("api.json", data);
    let entry = "tools: [{name: api, type: openapi, spec: api.json}]";
    without_waiting(async {
        if let Ok(assembly) = host_of(entry.to_owned(), String::new()) {
            assembly.host.close().await;
        }
    });
}

/// Every call that a model asks for gets an answer in the same format.
fn dialects(data: &[u8]) {
    let Ok(response) = serde_json::from_slice::<Value>(data) else { return };
    for format in ModelFormat::ALL {
        let Ok(calls) = format.requested_calls(&response) else { continue };
        let answers: Vec<_> = calls
            .into_iter()
            .map(|call| {
                let _arguments = call.arguments_or_raw();
                (call, CallAnswer::failure("no"))
            })
            .collect();
        let messages = format.answer_messages(&answers);
        assert_eq!(messages.is_empty(), answers.is_empty(), "{messages:?}");
    }
}

fn calculator(data: &[u8]) {
    static HOST: OnceLock<Arc<ToolHost>> = OnceLock::new();
    let Ok(expression) = std::str::from_utf8(data) else { return };
    let host = HOST.get_or_init(|| {
        let entry = "tools: [{name: calculator, module: builtin.calculator, function: calculate}]";
        host_of(entry.to_owned(), String::new()).unwrap().host
    });
    let request = CallRequest::json("calculator", json!({ "expression": expression })).unwrap();
    let outcome = without_waiting(host.call(request)).unwrap();
    let _said = outcome.result.map(|result| result.output);
}

fn token(data: &[u8]) {
    let (token, keys) = halves(data);
    let keys: Vec<JsonWebKey> = serde_json::from_str(&keys).unwrap_or_default();
    if let Some(token) = UncheckedToken::read(&token) {
        let claims = token.check(&keys, "https://issuer.example", &[], Duration::from_secs(1));
        assert!(claims.is_none(), "nobody signed it");
    }
}

/// Words of a command line.
fn words(data: &[u8]) {
    let (line, rest) = halves(data);
    let all: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let _curl = cli::curl::entry("a", &all);
    let sources = cli::raw_arguments::RawArguments {
        words: all.iter().filter(|word| !word.contains('@')).cloned().collect(),
        json_option: None,
        cwd: room().to_path_buf(),
    };
    let _arguments = cli::raw_arguments::read(&sources, &mut std::io::empty());
    let _candidates = cli::complete::arguments(line.as_ref());
    let _thresholds = bench::threshold::parse(&all, 1);
    let _history = tui::views::history::HistorySearch::of(&line);
    for word in &all {
        let _since = timestamp::parse_since(word);
        if let Some(duration) = units::duration(word) {
            let _shown = units::show_duration(duration);
        }
        let _size = units::size(word);
        if pattern::matches_all_after(word, &rest) {
            assert!(pattern::may_match_after(word, &rest), "{word:?} after {rest:?}");
        }
    }
}

/// What is shown holds nothing that a terminal acts on or a reader does not see.
fn shown_text(data: &[u8]) {
    let raw = String::from_utf8_lossy(data);
    let acts = |c: char, lines: bool| {
        let is_break = lines && matches!(c, '\n' | '\t');
        (c.is_control() && !is_break)
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            || matches!(c, '\u{e0000}'..='\u{e01ef}' | '\u{e000}'..='\u{f8ff}')
    };
    let safe = text::safe(&raw);
    assert!(!safe.chars().any(|c| acts(c, true)), "{safe:?}");
    let line = text::safe_line(&raw);
    assert!(!line.chars().any(|c| acts(c, false)), "{line:?}");
    assert_eq!(text::safe(&safe), safe, "what is safe stays as it is");
    for width in [0, 1, 7, 40] {
        assert!(text::width(&text::cut(&line, width)) <= width, "{line:?} at {width}");
        assert!(text::truncate(&raw, width).chars().count() <= width + 1);
    }
    if let Ok(value) = serde_json::from_slice::<Value>(data) {
        let line = serde_json::to_string(&value).unwrap();
        for written in [json_text::escape_invisible(&line), json_text::pretty(&value).into()] {
            assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
            assert!(!written.chars().any(|c| acts(c, true)), "{written:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything in the corpus, the inputs that once broke something among them.
    #[test]
    fn no_input_of_the_corpus_breaks_anything() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        for target in TARGETS {
            let inputs = std::fs::read_dir(corpus.join(target.name)).unwrap();
            let mut tried = 0;
            for input in inputs {
                (target.run)(&std::fs::read(input.unwrap().path()).unwrap());
                tried += 1;
            }
            assert!(tried > 0, "{} has no corpus", target.name);
        }
    }
}
