//! What every command is given: the options, the door, the environment, and the way to the host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::answers::{AnsweringInbox, Answers};
use super::args::Global;
use super::entries::owns;
use super::output::{Door, Format, Stop};
use super::progress::Progress;
use super::prompt::{self, TerminalApprover, TerminalInbox};
use super::trace::Watchers;
use crate::assembly::{self, Assembly, FrontEnd, Options};
use crate::config::LoadRequest;
use crate::config::environment::Environment;
use crate::config::spec::{Configuration, Trust, TrustRequest};
use crate::config::trust_store::TrustStore;
use crate::host::ToolHost;
use crate::host::approval::Approval;
use crate::host::request::Reach;
use crate::model::{EventSink, Fault, FaultKind, Inbox, Problem};
use crate::util::clock::{Clock as _, SystemClock};

/// What every command is given.
pub struct Context {
    /// Options of every command.
    pub global: Global,
    /// Where everything is written.
    pub door: Arc<Door>,
    /// Variables and directories.
    pub environment: Arc<dyn Environment>,
    /// Fires when a signal asks the command to stop.
    pub cancel: CancellationToken,
    /// Fires when a second signal asks the command to stop at once, if it asked for time.
    pub hurry: CancellationToken,
    /// How long the command may take to end after the first signal, if it asked for time.
    grace: OnceLock<Duration>,
    /// Who looks at the wires of servers.
    pub watchers: Watchers,
    /// Answers to servers' questions that were given with the command.
    answers: OnceLock<Arc<Answers>>,
    /// The host that was built last, so that it can be closed however the command ends.
    host: Mutex<Option<Arc<ToolHost>>>,
}

/// Which of the things that were never allowed a command may start, so that a person is asked
/// about those and no others.
#[derive(Debug, Clone, Copy)]
pub enum Starts<'a> {
    /// None.
    Nothing,
    /// Every server, or those named.
    Servers(&'a [String]),
    /// What the tool or server of this name needs.
    Named(&'a str, &'a [String]),
}

impl Context {
    /// The context of one run.
    pub fn new(global: Global, door: Arc<Door>, environment: Arc<dyn Environment>) -> Self {
        let (cancel, hurry) = (CancellationToken::new(), CancellationToken::new());
        let watchers = Watchers::new(&global, &door);
        let (answers, grace, host) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Self { global, door, environment, cancel, hurry, grace, watchers, answers, host }
    }

    /// Asks for so much time after the first signal, for a command that has something to tell even
    /// then. Such a command is also told of a second one, and has a moment for its last words.
    pub fn ask_for_time(&self, grace: Duration) {
        let _asked_before = self.grace.set(grace);
    }

    /// The time that was asked for.
    pub fn grace(&self) -> Option<Duration> {
        self.grace.get().copied()
    }

    /// Answers what servers ask by these rules first. To be said once, before the host is built.
    pub fn answer_with(&self, answers: Answers) {
        let _said_before = self.answers.set(Arc::new(answers));
    }

    /// For commands that hand a server's bytes to a client as they are: nothing of that may reach a
    /// terminal.
    ///
    /// # Errors
    /// A usage fault when standard output is a terminal.
    pub fn expect_client(&self, command: &str) -> Result<(), Fault> {
        if !self.door.is_terminal() {
            return Ok(());
        }
        let what = format!("{command} speaks to a client, and standard output is a terminal");
        Err(Fault::usage(what).hint(
            "let a client start it as its server; to see a server's wire: toolhost trace SERVER",
        ))
    }

    /// The host that was built, to be closed.
    pub fn take_host(&self) -> Option<Arc<ToolHost>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The format asked for, when the command knows it.
    ///
    /// # Errors
    /// A usage fault that lists the formats the command knows.
    pub fn format(&self, known: &[Format]) -> Result<Format, Fault> {
        let format = self.global.format();
        if known.contains(&format) {
            return Ok(format);
        }
        let words: Vec<&str> = known.iter().map(|format| format.as_str()).collect();
        Err(Fault::usage(format!("this command has no {} output", format.as_str()))
            .hint(format!("it can print {}", words.join(", "))))
    }

    /// Reads the configuration and builds the host; asks about what was never allowed.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole, and with `--strict` any problem in it.
    pub async fn assemble(&self, starts: Starts<'_>) -> Result<Assembly, Fault> {
        self.assemble_by(starts, || self.build()).await
    }

    /// As [`Context::assemble`], for another front end. Questions of trust are asked in lines all
    /// the same, where they can be read afterwards.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole, and with `--strict` any problem in it.
    pub async fn assemble_for(
        &self,
        front_end: &FrontEnd,
        starts: Starts<'_>,
    ) -> Result<Assembly, Fault> {
        self.assemble_by(starts, || self.build_for(front_end.clone())).await
    }

    async fn assemble_by(
        &self,
        starts: Starts<'_>,
        build: impl Fn() -> Result<Assembly, Fault>,
    ) -> Result<Assembly, Fault> {
        let assembly = build()?;
        self.judge(&assembly.configuration)?;
        let open = self.questions(&assembly, starts).await;
        if open.is_empty() || !prompt::is_possible() {
            return Ok(assembly);
        }
        let mut changed = false;
        for request in open {
            let door = Arc::clone(&self.door);
            if prompt::ask_trust(door, request.clone()).await == Approval::Granted {
                // At once: an interruption of the next question takes no answer back.
                self.allow(std::slice::from_ref(&request))?;
                changed = true;
            }
        }
        if !changed {
            return Ok(assembly);
        }
        // Nothing was started yet, so building again is all it takes to see the answers.
        build()
    }

    /// What a person has to be asked about before a command may start what it needs, directly or
    /// through the tools that a tool calls.
    async fn questions(&self, assembly: &Assembly, starts: Starts<'_>) -> Vec<TrustRequest> {
        let configuration = &assembly.configuration;
        let mut open = open_questions(configuration, starts);
        let tools = configuration.tools.iter().map(|tool| &tool.trust);
        let servers = configuration.servers.iter().map(|server| &server.trust);
        let any = tools.chain(servers).any(|trust| matches!(trust, Trust::Ask(_)));
        let Starts::Named(name, _) = starts else { return open };
        if !any {
            return open;
        }
        let known = assembly.host.catalogue(&Reach::Declared).await;
        let calls: BTreeMap<String, Vec<String>> =
            known.tools.iter().map(|tool| (tool.name.full(), tool.calls.clone())).collect();
        for called in called_by(name, &calls) {
            for request in open_questions(configuration, Starts::Named(called, &[])) {
                if !open.iter().any(|earlier| earlier.key == request.key) {
                    open.push(request);
                }
            }
        }
        open
    }

    /// Reads the configuration and builds the host, without a word about problems.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole.
    pub fn build(&self) -> Result<Assembly, Fault> {
        let approver = TerminalApprover::new(Arc::clone(&self.door));
        let traffic = self.watchers.sink(&self.door)?;
        self.build_for(FrontEnd {
            approver: Arc::new(approver),
            inbox: self.inbox(),
            events: self.events(),
            traffic,
        })
    }

    /// As [`Context::build`], for another front end.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole.
    fn build_for(&self, front_end: FrontEnd) -> Result<Assembly, Fault> {
        let assembly = assembly::assemble(&self.options(), &self.environment, front_end)?;
        self.door.hide(assembly.masker.clone());
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        *host = Some(Arc::clone(&assembly.host));
        drop(host);
        Ok(assembly)
    }

    /// Remembers that a person allowed these.
    ///
    /// # Errors
    /// When the record of trust cannot be used.
    pub fn allow(&self, requests: &[TrustRequest]) -> Result<(), Fault> {
        self.trust_store()?.allow(requests, SystemClock.unix())
    }

    /// The record of what was allowed.
    ///
    /// # Errors
    /// When it cannot be read, or others may write to it.
    pub fn trust_store(&self) -> Result<TrustStore, Fault> {
        TrustStore::open(self.environment.state_dir().as_deref()).map_err(|problem| {
            let fault = Fault::config(problem.message);
            match problem.hint {
                Some(hint) => fault.hint(hint),
                None => fault,
            }
        })
    }

    /// Reads the configuration alone.
    pub fn load(&self) -> Configuration {
        self.load_as(&self.load_request())
    }

    /// Reads the configuration alone, with every question of trust open that is not answered in
    /// the record.
    pub fn load_untrusting(&self) -> Configuration {
        let request = LoadRequest { trust_all: false, ..self.load_request() };
        self.load_as(&request)
    }

    fn load_as(&self, request: &LoadRequest) -> Configuration {
        let (configuration, masker) = assembly::load(request, &*self.environment);
        self.door.hide(masker);
        configuration
    }

    /// What to read.
    pub fn load_request(&self) -> LoadRequest {
        LoadRequest {
            tools: self.global.tools.clone(),
            servers: self.global.mcp.clone(),
            given: self.global.tools_module.iter().map(|m| assembly::tools_of_module(m)).collect(),
            trust_all: self.trusts_all(),
        }
    }

    /// Whether this run trusts whatever its files would start.
    pub fn trusts_all(&self) -> bool {
        self.global.trust || self.environment.var("TOOLHOST_TRUST").is_some_and(|v| v == "1")
    }

    fn options(&self) -> Options {
        Options {
            files: self.load_request(),
            profile: self.global.profile.clone(),
            insecure: self.global.insecure,
            require_record: self.global.require_record,
            log_level: match (self.global.log_level, self.global.verbose) {
                (Some(level), _) => Some(level.as_str()),
                (None, 0) => None,
                (None, 1) => Some("info"),
                (None, _) => Some("debug"),
            },
        }
    }

    fn inbox(&self) -> Arc<dyn Inbox> {
        let person = Arc::new(TerminalInbox::new(Arc::clone(&self.door)));
        match self.answers.get() {
            Some(answers) => Arc::new(AnsweringInbox {
                answers: Arc::clone(answers),
                next: person,
                door: Arc::clone(&self.door),
            }),
            None => person,
        }
    }

    fn events(&self) -> EventSink {
        let progress = Progress::new(Arc::clone(&self.door), Arc::new(SystemClock))
            .with_logs(self.global.log_level.is_some());
        EventSink::new(move |event| progress.show(&event))
    }

    /// One line about problems in the files, or with `--strict` the end.
    fn judge(&self, configuration: &Configuration) -> Result<(), Fault> {
        let (errors, warnings) = count(configuration);
        if self.global.insecure {
            self.door.warn("--insecure: TLS certificates are not verified in this run");
        }
        if self.global.strict && errors + warnings > 0 {
            let place = configuration.problems.first().and_then(|p| p.place.clone());
            let message = match configuration.problems.first() {
                Some(first) => first.message.clone(),
                None => "the configuration has problems".to_owned(),
            };
            let mut fault = Fault::new(FaultKind::Config, message)
                .hint("--strict was given; 'toolhost config check' lists every problem");
            if let Some(place) = place {
                fault = fault.place(place);
            }
            return Err(fault);
        }
        if errors > 0 && self.door.verbosity() > 0 {
            self.door.warn(&format!(
                "{} out of service, see 'toolhost config check'",
                plural(out_of_service(&configuration.problems), "entry is", "entries are")
            ));
        } else if warnings > 0 && self.door.verbosity() > 0 {
            self.door.warn(&format!(
                "{} about the configuration, see 'toolhost config check'",
                plural(warnings, "remark", "remarks")
            ));
        }
        Ok(())
    }
}

/// The number of errors and of warnings.
pub fn count(configuration: &Configuration) -> (usize, usize) {
    let errors = configuration.problems.iter().filter(|problem| problem.is_error()).count();
    (errors, configuration.problems.len() - errors)
}

/// How many entries are out of service; one may have several errors.
pub fn out_of_service(problems: &[Problem]) -> usize {
    let errors = || problems.iter().filter(|problem| problem.is_error());
    let entries: BTreeSet<&str> = errors().filter_map(|p| p.entry.as_deref()).collect();
    entries.len() + errors().filter(|problem| problem.entry.is_none()).count()
}

/// `1 tool`, `2 tools`.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What a person has to be asked about before a command may start what it needs.
fn open_questions(configuration: &Configuration, starts: Starts<'_>) -> Vec<TrustRequest> {
    let servers = configuration.servers.iter().map(|s| (s.name.as_str(), &s.trust, true));
    let tools = configuration.tools.iter();
    let tools = tools.map(|t| (t.definition.name.tool(), &t.trust, false));
    let all: Vec<(&str, &Trust, bool)> = servers.chain(tools).collect();
    // A bare name may belong to any server; a name that starts with an entry's belongs to it.
    let known = |name: &str| all.iter().any(|(entry, _, _)| owns(entry, name));
    let mut requests: Vec<TrustRequest> = Vec::new();
    for (entry, state, is_server) in &all {
        let needed = match starts {
            Starts::Nothing => false,
            Starts::Servers(names) => {
                *is_server && (names.is_empty() || names.iter().any(|name| name == entry))
            }
            Starts::Named(name, names) => {
                let allowed = names.is_empty() || !is_server || names.iter().any(|n| n == entry);
                allowed && (owns(entry, name) || (*is_server && !known(name)))
            }
        };
        if let (true, Trust::Ask(request)) = (needed, state)
            && !requests.iter().any(|earlier| earlier.key == request.key)
        {
            requests.push(request.clone());
        }
    }
    requests
}

/// The tools that a tool calls, and those that they call, each once.
fn called_by<'c>(name: &str, calls: &'c BTreeMap<String, Vec<String>>) -> Vec<&'c str> {
    let mut found: Vec<&str> = Vec::new();
    let mut next = 0;
    let mut at = name;
    loop {
        for called in calls.get(at).into_iter().flatten() {
            if !found.contains(&called.as_str()) {
                found.push(called);
            }
        }
        let Some(called) = found.get(next) else { return found };
        at = called;
        next += 1;
    }
}

/// What a command gives back.
pub type Outcome = Result<(), Stop>;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::node::{Node, NodeValue, Position, SourceText};
    use crate::config::spec::{
        AuthSpec, Endpoint, HttpTransport, ProtocolChoice, ServerSpec, ToolSpec,
    };
    use crate::model::{Origin, Source, ToolDefinition, ToolName};

    fn ask(name: &str) -> Trust {
        Trust::Ask(TrustRequest {
            key: name.to_owned(),
            name: name.to_owned(),
            file: PathBuf::from("mcp.yaml"),
            lines: Vec::new(),
            previous: None,
        })
    }

    fn node() -> Node {
        Node {
            value: NodeValue::Null,
            position: Position::default(),
            source: SourceText::new("t", ""),
        }
    }

    fn server(name: &str) -> ServerSpec {
        ServerSpec {
            name: name.to_owned(),
            description: None,
            endpoint: Endpoint::Http {
                url: url::Url::parse("http://localhost/").unwrap(),
                socket: None,
                transport: HttpTransport::Auto,
                headers: Vec::new(),
                auth: Box::new(AuthSpec::None),
            },
            protocol: ProtocolChoice::Auto,
            timeout: None,
            max_total: None,
            start_timeout: None,
            exclude: Vec::new(),
            include: None,
            roots: Vec::new(),
            routing_weight: None,
            dev: false,
            drift: None,
            provides_tools: Vec::new(),
            retries: 0,
            requires_approval: false,
            sandbox: None,
            place: node().place(),
            trust: ask(name),
        }
    }

    fn tool(name: &str) -> ToolSpec {
        let place = node().place();
        ToolSpec {
            definition: ToolDefinition::new(
                ToolName::plain(name),
                Source::Internal,
                "command",
                Origin::File(place.clone()),
            ),
            kind: "command",
            entry: node().into(),
            written: node().into(),
            base_dir: PathBuf::new(),
            place,
            defaults: None,
            scopes: std::sync::Arc::default(),
            trust: ask(name),
        }
    }

    fn asked(starts: Starts<'_>) -> Vec<String> {
        let configuration = Configuration {
            servers: vec![server("github"), server("git")],
            tools: vec![tool("log")],
            ..Configuration::default()
        };
        open_questions(&configuration, starts).into_iter().map(|r| r.name).collect()
    }

    #[test]
    fn a_listing_asks_about_the_servers_it_needs() {
        assert_eq!(asked(Starts::Nothing), [""; 0]);
        assert_eq!(asked(Starts::Servers(&[])), ["github", "git"]);
        assert_eq!(asked(Starts::Servers(&["git".to_owned()])), ["git"]);
    }

    #[test]
    fn a_call_asks_about_the_owner_of_the_tool_only() {
        assert_eq!(asked(Starts::Named("github-search", &[])), ["github"]);
        assert_eq!(asked(Starts::Named("git.log", &[])), ["git"]);
        assert_eq!(asked(Starts::Named("log", &[])), ["log"]);
    }

    #[test]
    fn the_tools_that_a_tool_calls_are_followed_to_the_end() {
        let calls = |name: &str, all: &[&str]| {
            (name.to_owned(), all.iter().map(|c| (*c).to_owned()).collect())
        };
        let calls = [calls("a", &["b", "c"]), calls("b", &["c", "d"]), calls("d", &["a"])];
        let calls = BTreeMap::from(calls);
        assert_eq!(called_by("a", &calls), ["b", "c", "d", "a"]);
        assert_eq!(called_by("c", &calls), [""; 0]);
    }

    #[test]
    fn an_entry_with_several_errors_is_one_entry() {
        let error = |entry: &str| Problem::error("wrong").entry(entry);
        let problems = [
            error("a"),
            error("a"),
            error("b"),
            Problem::error("no entry"),
            Problem::warning("hm").entry("c"),
        ];
        assert_eq!(out_of_service(&problems), 3);
    }

    #[test]
    fn a_bare_name_may_belong_to_any_server() {
        assert_eq!(asked(Starts::Named("search", &[])), ["github", "git"]);
        assert_eq!(asked(Starts::Named("search", &["git".to_owned()])), ["git"]);
    }
}
