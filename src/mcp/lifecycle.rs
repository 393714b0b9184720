//! Which protocol era a server speaks, found out by a pure state machine.
//!
//! Owns: what to send next during the handshake, and what an answer to it means. Never does: send,
//! wait or start anything — the connection does that and reports back.
//!
//! The order: `server/discover` (2026-07-28). A valid answer settles it. An error brings
//! `initialize` on the same pipe. Silence brings `initialize` too, and whichever valid answer comes
//! first counts. A process that dies is started once more, with `initialize` first, because some
//! early servers die of a method they do not know.

use serde_json::{Value, json};

use super::message::{Raw, error_code};
use crate::config::spec::ProtocolChoice;
use crate::model::{Era, Fault, FaultKind};

/// The stateless revision.
pub const MODERN: &str = "2026-07-28";
/// The newest revision with `initialize`.
pub const LEGACY: &str = "2025-11-25";
/// Revisions with `initialize` that are understood, oldest first.
const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];

/// How many of the revisions that a server says it speaks are kept.
const MOST_VERSIONS: usize = 50;
/// "Unsupported protocol version", with the supported ones in `data.supported`.
const UNSUPPORTED_VERSION: i64 = -32022;

/// A request of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `server/discover`.
    Discover,
    /// `initialize`, with the version to offer.
    Initialize(&'static str),
}

/// What happened on the wire.
#[derive(Debug)]
pub enum Heard {
    /// An answer to `server/discover`.
    Discover(Result<Raw, Fault>),
    /// An answer to `initialize`.
    Initialize(Result<Raw, Fault>),
    /// Nothing, for the probe's time.
    Silence,
    /// The wire is gone.
    Gone(Fault),
}

/// What to do next.
#[derive(Debug)]
pub enum Action {
    /// Send this.
    Send(Step),
    /// Keep listening.
    Wait,
    /// Start a fresh wire and send `initialize` on it.
    Restart,
    /// Agreed.
    Ready(Box<Agreement>),
    /// There is no way.
    Fail(Fault),
}

/// What both sides agreed on, and what the server said about itself.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// The lifecycle.
    pub era: Era,
    /// The revision.
    pub version: String,
    /// All revisions the server said it speaks; only `server/discover` tells.
    pub supported_versions: Vec<String>,
    /// The capabilities, as declared.
    pub capabilities: Value,
    /// Name and version, as claimed.
    pub server_info: Option<Value>,
    /// Instructions for models.
    pub instructions: Option<String>,
}

/// The state of one handshake.
#[derive(Debug)]
pub struct Lifecycle {
    choice: ProtocolChoice,
    /// Whether a wire begins with `initialize` although the file leaves it open.
    legacy_first: bool,
    discover: Asked,
    initialize: Asked,
    restarted: bool,
    version_retried: bool,
}

#[derive(Debug, Default)]
enum Asked {
    #[default]
    No,
    Pending,
    Refused(Fault),
}

impl Asked {
    fn is_no(&self) -> bool {
        matches!(self, Self::No)
    }
}

impl Lifecycle {
    /// A handshake with what the file says and what was true last time.
    pub fn new(choice: ProtocolChoice, remembered: Option<Era>) -> Self {
        Self {
            choice,
            legacy_first: remembered == Some(Era::Legacy),
            discover: Asked::No,
            initialize: Asked::No,
            restarted: false,
            version_retried: false,
        }
    }

    /// The first thing to send.
    pub fn start(&mut self) -> Step {
        let legacy = match self.choice {
            ProtocolChoice::Legacy => true,
            ProtocolChoice::Modern => false,
            ProtocolChoice::Auto => self.legacy_first,
        };
        if legacy { self.send_initialize(LEGACY) } else { self.send_discover() }
    }

    /// Takes in what happened and says what to do.
    pub fn hear(&mut self, heard: Heard) -> Action {
        match heard {
            Heard::Discover(answer) => match answer.and_then(|raw| read_discover(&raw)) {
                Ok(agreement) => Action::Ready(Box::new(agreement)),
                Err(fault) => self.discover_refused(fault),
            },
            Heard::Initialize(answer) => match answer.and_then(|raw| read_initialize(&raw)) {
                Ok(agreement) => Action::Ready(Box::new(agreement)),
                Err(fault) => self.initialize_refused(fault),
            },
            Heard::Silence if self.may_initialize() && self.initialize.is_no() => {
                Action::Send(self.send_initialize(LEGACY))
            }
            Heard::Silence => Action::Wait,
            Heard::Gone(fault) => {
                let final_word = matches!(fault.kind(), FaultKind::Auth | FaultKind::Denied);
                if self.may_restart() && !final_word { self.restart() } else { Action::Fail(fault) }
            }
        }
    }

    /// A refusal that does not say of what: it concerns the newest request.
    pub fn refusal(&self, fault: Fault) -> Heard {
        match self.initialize {
            Asked::Pending => Heard::Initialize(Err(fault)),
            Asked::No | Asked::Refused(_) => Heard::Discover(Err(fault)),
        }
    }

    /// Whether an answer to `server/discover` is still expected.
    pub fn waits_for_discover(&self) -> bool {
        matches!(self.discover, Asked::Pending)
    }

    /// Whether an answer to `initialize` is still expected.
    pub fn waits_for_initialize(&self) -> bool {
        matches!(self.initialize, Asked::Pending)
    }

    fn send_discover(&mut self) -> Step {
        self.discover = Asked::Pending;
        Step::Discover
    }

    fn send_initialize(&mut self, version: &'static str) -> Step {
        self.initialize = Asked::Pending;
        Step::Initialize(version)
    }

    fn may_initialize(&self) -> bool {
        self.choice != ProtocolChoice::Modern
    }

    /// Only a discover can have killed or confused a server; one fresh start is enough.
    fn may_restart(&self) -> bool {
        self.choice == ProtocolChoice::Auto && !self.restarted && !self.discover.is_no()
    }

    /// Begins again with what did not fail: a modern server may die of `initialize` just as well.
    fn restart(&mut self) -> Action {
        self.restarted = true;
        self.legacy_first = !matches!(self.initialize, Asked::Refused(_));
        self.discover = Asked::No;
        self.initialize = Asked::No;
        Action::Restart
    }

    fn discover_refused(&mut self, fault: Fault) -> Action {
        if error_code(&fault) == Some(UNSUPPORTED_VERSION) {
            return self.other_version(&fault);
        }
        self.discover = Asked::Refused(fault.clone());
        if !self.may_initialize() {
            return Action::Fail(self.insisted(fault));
        }
        match &self.initialize {
            Asked::No => Action::Send(self.send_initialize(LEGACY)),
            Asked::Pending => Action::Wait,
            Asked::Refused(earlier) => Action::Fail(earlier.clone()),
        }
    }

    /// The server names the versions it speaks: take one of those, and only one more try.
    fn other_version(&mut self, fault: &Fault) -> Action {
        let supported = supported_versions(fault);
        let mutual = LEGACY_VERSIONS.iter().rev().find(|v| supported.iter().any(|s| s == *v));
        if supported.iter().any(|v| v == MODERN) && !self.version_retried {
            self.version_retried = true;
            return Action::Send(self.send_discover());
        }
        match mutual {
            Some(version) if self.may_initialize() && self.initialize.is_no() => {
                Action::Send(self.send_initialize(version))
            }
            _ => Action::Fail(no_common_version(&supported.join(", "))),
        }
    }

    fn initialize_refused(&mut self, fault: Fault) -> Action {
        self.initialize = Asked::Refused(fault.clone());
        match &self.discover {
            Asked::Pending => Action::Wait,
            // Remembered as legacy and changed since.
            Asked::No
                if self.choice == ProtocolChoice::Auto
                    && !self.restarted
                    && fault.kind() == FaultKind::Tool =>
            {
                Action::Send(self.send_discover())
            }
            _ => Action::Fail(self.insisted(fault)),
        }
    }

    /// A refusal of the only lifecycle that the file allows.
    fn insisted(&self, fault: Fault) -> Fault {
        let word = match self.choice {
            ProtocolChoice::Auto => return fault,
            ProtocolChoice::Legacy => "legacy",
            ProtocolChoice::Modern => MODERN,
        };
        if fault.hint_text().is_some() || fault.kind() == FaultKind::Auth {
            return fault;
        }
        fault.hint(format!(
            "its entry insists on `protocol: {word}`; without that line toolhost finds out what it speaks"
        ))
    }
}

/// The versions an error of kind "unsupported protocol version" lists.
fn supported_versions(fault: &Fault) -> Vec<String> {
    let listed = fault.evidence().and_then(|e| e.get("data")).and_then(|d| d.get("supported"));
    texts(listed)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn no_common_version(theirs: &str) -> Fault {
    Fault::protocol(format!(
        "no common protocol version: the server speaks {theirs}; toolhost speaks {} and {MODERN}",
        LEGACY_VERSIONS.join(", ")
    ))
}

/// Reads a `DiscoverResult`; missing cache hints are forgiven, as servers leave them out.
fn read_discover(raw: &Raw) -> Result<Agreement, Fault> {
    let value = raw.parse()?;
    let versions = texts(value.get("supportedVersions"));
    if versions.is_empty() {
        return Err(Fault::protocol("the answer to server/discover has no supportedVersions"));
    }
    if !versions.iter().any(|v| v == MODERN) {
        let data = json!({ "code": UNSUPPORTED_VERSION, "data": { "supported": versions } });
        return Err(no_common_version(&versions.join(", ")).data(data));
    }
    let meta = value.get("_meta").and_then(|m| m.get("io.modelcontextprotocol/serverInfo"));
    Ok(Agreement {
        era: Era::Modern,
        version: MODERN.to_owned(),
        supported_versions: versions.into_iter().take(MOST_VERSIONS).collect(),
        capabilities: value.get("capabilities").cloned().unwrap_or_else(|| json!({})),
        server_info: value.get("serverInfo").or(meta).cloned(),
        instructions: instructions(&value),
    })
}

/// Reads an `InitializeResult`, naming every required field that is missing.
fn read_initialize(raw: &Raw) -> Result<Agreement, Fault> {
    let value = raw.parse()?;
    let missing: Vec<&str> = ["protocolVersion", "capabilities", "serverInfo"]
        .into_iter()
        .filter(|key| value.get(key).is_none_or(Value::is_null))
        .collect();
    let version = value.get("protocolVersion").and_then(Value::as_str);
    let (Some(version), true) = (version, missing.is_empty()) else {
        return Err(Fault::protocol(format!(
            "the answer to initialize lacks {}",
            if missing.is_empty() {
                "a protocolVersion that is text".into()
            } else {
                missing.join(", ")
            }
        )));
    };
    if !LEGACY_VERSIONS.contains(&version) {
        return Err(no_common_version(version));
    }
    Ok(Agreement {
        era: Era::Legacy,
        version: version.to_owned(),
        supported_versions: Vec::new(),
        capabilities: value.get("capabilities").cloned().unwrap_or_default(),
        server_info: value.get("serverInfo").cloned(),
        instructions: instructions(&value),
    })
}

fn instructions(value: &Value) -> Option<String> {
    value.get("instructions").and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "it stands where an answer stands")]
    fn raw(value: &Value) -> Result<Raw, Fault> {
        Ok(Raw(serde_json::value::to_raw_value(value).unwrap()))
    }

    fn discovered() -> Result<Raw, Fault> {
        raw(&json!({ "supportedVersions": [MODERN], "capabilities": {} }))
    }

    fn initialized(version: &str) -> Result<Raw, Fault> {
        raw(
            &json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": { "name": "x" } }),
        )
    }

    fn refused(code: i64, supported: &[&str]) -> Result<Raw, Fault> {
        Err(Fault::tool("no").data(json!({ "code": code, "data": { "supported": supported } })))
    }

    fn auto() -> Lifecycle {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Auto, None);
        assert_eq!(lifecycle.start(), Step::Discover);
        lifecycle
    }

    #[track_caller]
    fn ready(action: Action, era: Era) {
        match action {
            Action::Ready(agreement) => assert_eq!(agreement.era, era),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn sends(action: &Action, step: Step) {
        assert!(matches!(action, Action::Send(s) if *s == step), "{action:?}");
    }

    #[test]
    fn a_modern_server_is_settled_by_discover() {
        ready(auto().hear(Heard::Discover(discovered())), Era::Modern);
    }

    #[test]
    fn a_refused_discover_brings_initialize_on_the_same_pipe() {
        let mut lifecycle = auto();
        sends(&lifecycle.hear(Heard::Discover(refused(-32601, &[]))), Step::Initialize(LEGACY));
        ready(lifecycle.hear(Heard::Initialize(initialized("2024-11-05"))), Era::Legacy);
    }

    #[test]
    fn an_answer_that_is_no_discover_result_counts_as_a_refusal() {
        sends(&auto().hear(Heard::Discover(raw(&json!({})))), Step::Initialize(LEGACY));
    }

    #[test]
    fn silence_brings_initialize_and_a_late_discover_still_wins() {
        let mut lifecycle = auto();
        sends(&lifecycle.hear(Heard::Silence), Step::Initialize(LEGACY));
        assert!(matches!(lifecycle.hear(Heard::Silence), Action::Wait));
        ready(lifecycle.hear(Heard::Discover(discovered())), Era::Modern);
    }

    #[test]
    fn a_server_that_dies_of_discover_is_started_once_more_with_initialize() {
        let mut lifecycle = auto();
        let gone = || Heard::Gone(Fault::unreachable("gone"));
        assert!(matches!(lifecycle.hear(gone()), Action::Restart));
        assert_eq!(lifecycle.start(), Step::Initialize(LEGACY));
        assert!(matches!(lifecycle.hear(gone()), Action::Fail(_)));
    }

    #[test]
    fn refusals_of_authority_are_final() {
        assert!(matches!(auto().hear(Heard::Gone(Fault::auth("401"))), Action::Fail(_)));
    }

    #[test]
    fn unknown_versions_are_named_on_both_sides() {
        for version in ["1999-01-01", "2099-12-31"] {
            let mut lifecycle = Lifecycle::new(ProtocolChoice::Legacy, None);
            lifecycle.start();
            let Action::Fail(fault) = lifecycle.hear(Heard::Initialize(initialized(version)))
            else {
                panic!("accepted {version}")
            };
            assert_eq!(fault.kind(), FaultKind::Protocol);
            assert!(fault.message().contains(version) && fault.message().contains(LEGACY));
        }
    }

    #[test]
    fn missing_fields_are_named() {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Legacy, None);
        lifecycle.start();
        let Action::Fail(fault) = lifecycle.hear(Heard::Initialize(raw(&json!({})))) else {
            panic!("accepted")
        };
        assert!(fault.message().contains("protocolVersion, capabilities, serverInfo"));
    }

    #[test]
    fn an_unsupported_version_is_retried_once_with_one_that_is_supported() {
        let mut lifecycle = auto();
        sends(&lifecycle.hear(Heard::Discover(refused(-32022, &[MODERN]))), Step::Discover);
        let action = lifecycle.hear(Heard::Discover(refused(-32022, &[MODERN])));
        assert!(matches!(action, Action::Fail(_)));
        let mut lifecycle = auto();
        sends(
            &lifecycle.hear(Heard::Discover(refused(-32022, &["2025-06-18"]))),
            Step::Initialize("2025-06-18"),
        );
    }

    #[test]
    fn a_remembered_era_is_tried_first_and_may_be_wrong() {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Auto, Some(Era::Legacy));
        assert_eq!(lifecycle.start(), Step::Initialize(LEGACY));
        sends(&lifecycle.hear(Heard::Initialize(refused(-32601, &[]))), Step::Discover);
        ready(lifecycle.hear(Heard::Discover(discovered())), Era::Modern);
    }

    #[test]
    fn a_server_that_became_modern_and_dies_of_initialize_is_started_once_more() {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Auto, Some(Era::Legacy));
        lifecycle.start();
        sends(&lifecycle.hear(Heard::Initialize(refused(-32601, &[]))), Step::Discover);
        let gone = lifecycle.hear(Heard::Gone(Fault::unreachable("gone")));
        assert!(matches!(gone, Action::Restart));
        assert_eq!(lifecycle.start(), Step::Discover);
        ready(lifecycle.hear(Heard::Discover(discovered())), Era::Modern);
    }

    #[test]
    fn a_forced_era_never_falls_back_and_says_what_forces_it() {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Modern, Some(Era::Legacy));
        assert_eq!(lifecycle.start(), Step::Discover);
        assert!(matches!(lifecycle.hear(Heard::Silence), Action::Wait));
        let action = lifecycle.hear(Heard::Discover(refused(-32601, &[])));
        let Action::Fail(fault) = action else { panic!("{action:?}") };
        assert!(fault.hint_text().unwrap().contains("protocol: 2026-07-28"));
    }
}
