//! Detecting the protocol era of a server, as a pure state machine.
//!
//! The order: `server/discover` (2026-07-28). A valid answer settles it. An error leads to
//! `initialize` on the same pipe. So does silence, and then the first valid response counts. A
//! process that exits is started once more, with `initialize` first, because some early servers
//! exit on an unknown method.

use serde_json::{Value, json};

use super::message::{RawJson, UNSUPPORTED_VERSION};
use crate::config::spec::ProtocolChoice;
use crate::model::{Era, Error, ErrorKind};

/// The newest revision, which has no `initialize` and no sessions.
pub const MODERN: &str = "2026-07-28";
/// The newest revision with `initialize`.
pub const LEGACY: &str = "2025-11-25";
/// Revisions with `initialize` that are understood, oldest first.
const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];

/// How many of the revisions that a server says it speaks are kept.
const MAX_VERSIONS: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeRequest {
    /// `server/discover`, the first request of the modern era.
    Discover,
    /// `initialize`, with the version to offer.
    Initialize(&'static str),
}

#[derive(Debug)]
pub enum HandshakeEvent {
    /// The answer to `server/discover`, or its refusal.
    Discover(Result<RawJson, Error>),
    /// The answer to `initialize`, or its refusal.
    Initialize(Result<RawJson, Error>),
    /// Nothing, for the probe's time.
    Silence,
    WireClosed(Error),
}

#[derive(Debug)]
pub enum HandshakeAction {
    Send(HandshakeRequest),
    /// Keep listening to the wire.
    Wait,
    /// Start a fresh wire and send `initialize` on it.
    Restart,
    /// Both sides agreed: the session can begin.
    Ready(Box<Agreement>),
    /// No version or lifecycle is left to try.
    Fail(Error),
}

/// What both sides agreed on, and what the server declared about itself.
#[derive(Debug, Clone)]
pub struct Agreement {
    pub era: Era,
    /// The revision, as its date.
    pub version: String,
    /// All revisions the server declares; only `server/discover` reports them.
    pub supported_versions: Vec<String>,
    pub capabilities: Value,
    /// Name and version, as claimed.
    pub server_info: Option<Value>,
    pub instructions: Option<String>,
}

#[derive(Debug)]
pub struct Lifecycle {
    choice: ProtocolChoice,
    /// Whether a wire begins with `initialize` although the file leaves it open.
    starts_with_legacy: bool,
    discover: RequestState,
    initialize: RequestState,
    has_restarted: bool,
    has_retried_version: bool,
}

#[derive(Debug, Default)]
enum RequestState {
    #[default]
    NotSent,
    Pending,
    Refused(Error),
}

impl RequestState {
    fn is_unsent(&self) -> bool {
        matches!(self, Self::NotSent)
    }
}

impl Lifecycle {
    /// A handshake with what the file says and what was true last time.
    pub fn new(choice: ProtocolChoice, remembered: Option<Era>) -> Self {
        Self {
            choice,
            starts_with_legacy: remembered == Some(Era::Legacy),
            discover: RequestState::NotSent,
            initialize: RequestState::NotSent,
            has_restarted: false,
            has_retried_version: false,
        }
    }

    pub fn start(&mut self) -> HandshakeRequest {
        let legacy = match self.choice {
            ProtocolChoice::Legacy => true,
            ProtocolChoice::Modern => false,
            ProtocolChoice::Auto => self.starts_with_legacy,
        };
        if legacy { self.send_initialize(LEGACY) } else { self.send_discover() }
    }

    pub fn handle(&mut self, event: HandshakeEvent) -> HandshakeAction {
        match event {
            HandshakeEvent::Discover(answer) => match answer.and_then(|raw| read_discover(&raw)) {
                Ok(agreement) => HandshakeAction::Ready(Box::new(agreement)),
                Err(error) => self.discover_refused(error),
            },
            HandshakeEvent::Initialize(answer) => {
                match answer.and_then(|raw| read_initialize(&raw)) {
                    Ok(agreement) => HandshakeAction::Ready(Box::new(agreement)),
                    Err(error) => self.initialize_refused(error),
                }
            }
            HandshakeEvent::Silence if self.may_initialize() && self.initialize.is_unsent() => {
                HandshakeAction::Send(self.send_initialize(LEGACY))
            }
            HandshakeEvent::Silence => HandshakeAction::Wait,
            HandshakeEvent::WireClosed(error) => {
                let final_word = matches!(error.kind(), ErrorKind::Auth | ErrorKind::Denied);
                if self.may_restart() && !final_word {
                    self.restart()
                } else {
                    HandshakeAction::Fail(error)
                }
            }
        }
    }

    fn send_discover(&mut self) -> HandshakeRequest {
        self.discover = RequestState::Pending;
        HandshakeRequest::Discover
    }

    fn send_initialize(&mut self, version: &'static str) -> HandshakeRequest {
        self.initialize = RequestState::Pending;
        HandshakeRequest::Initialize(version)
    }

    fn may_initialize(&self) -> bool {
        self.choice != ProtocolChoice::Modern
    }

    /// Only a discover can have killed or confused a server; one fresh start is enough.
    fn may_restart(&self) -> bool {
        self.choice == ProtocolChoice::Auto && !self.has_restarted && !self.discover.is_unsent()
    }

    /// Begins again with what did not fail: a modern server may die of `initialize` just as well.
    fn restart(&mut self) -> HandshakeAction {
        self.has_restarted = true;
        self.starts_with_legacy = !matches!(self.initialize, RequestState::Refused(_));
        self.discover = RequestState::NotSent;
        self.initialize = RequestState::NotSent;
        HandshakeAction::Restart
    }

    fn discover_refused(&mut self, error: Error) -> HandshakeAction {
        if error.rpc_code() == Some(UNSUPPORTED_VERSION) {
            return self.other_version(&error);
        }
        self.discover = RequestState::Refused(error.clone());
        if !self.may_initialize() {
            return HandshakeAction::Fail(self.forced_choice_error(error));
        }
        match &self.initialize {
            RequestState::NotSent => HandshakeAction::Send(self.send_initialize(LEGACY)),
            RequestState::Pending => HandshakeAction::Wait,
            RequestState::Refused(earlier) => HandshakeAction::Fail(earlier.clone()),
        }
    }

    /// The server names the versions it speaks: take one of those, and only one more try.
    fn other_version(&mut self, error: &Error) -> HandshakeAction {
        let supported = supported_versions(error);
        let mutual = LEGACY_VERSIONS.iter().rev().find(|v| supported.iter().any(|s| s == *v));
        if supported.iter().any(|v| v == MODERN) && !self.has_retried_version {
            self.has_retried_version = true;
            return HandshakeAction::Send(self.send_discover());
        }
        match mutual {
            Some(version) if self.may_initialize() && self.initialize.is_unsent() => {
                HandshakeAction::Send(self.send_initialize(version))
            }
            _ => HandshakeAction::Fail(no_common_version(&supported.join(", "))),
        }
    }

    fn initialize_refused(&mut self, error: Error) -> HandshakeAction {
        self.initialize = RequestState::Refused(error.clone());
        match &self.discover {
            RequestState::Pending => HandshakeAction::Wait,
            // Remembered as legacy and changed since.
            RequestState::NotSent
                if self.choice == ProtocolChoice::Auto
                    && !self.has_restarted
                    && error.kind() == ErrorKind::Tool =>
            {
                HandshakeAction::Send(self.send_discover())
            }
            _ => HandshakeAction::Fail(self.forced_choice_error(error)),
        }
    }

    /// A refusal of the only lifecycle that the file allows.
    fn forced_choice_error(&self, error: Error) -> Error {
        let word = match self.choice {
            ProtocolChoice::Auto => return error,
            ProtocolChoice::Legacy => "legacy",
            ProtocolChoice::Modern => MODERN,
        };
        if error.hint().is_some() || error.kind() == ErrorKind::Auth {
            return error;
        }
        error.with_hint(format!(
            "its entry sets `protocol: {word}`; remove that to detect the version"
        ))
    }
}

fn supported_versions(error: &Error) -> Vec<String> {
    let listed = error.rpc_data().and_then(|data| data.get("supported"));
    texts(listed)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn no_common_version(theirs: &str) -> Error {
    Error::protocol(format!(
        "no common protocol version: the server speaks {theirs}; toolhost speaks {} and {MODERN}",
        LEGACY_VERSIONS.join(", ")
    ))
}

/// Reads a `DiscoverResult`; missing cache hints are forgiven, as servers leave them out.
fn read_discover(raw: &RawJson) -> Result<Agreement, Error> {
    let value = raw.parse()?;
    let versions = texts(value.get("supportedVersions"));
    if versions.is_empty() {
        return Err(Error::protocol("the response to server/discover has no supportedVersions"));
    }
    if !versions.iter().any(|v| v == MODERN) {
        let data = json!({ "supported": versions });
        return Err(no_common_version(&versions.join(", "))
            .with_rpc_error(UNSUPPORTED_VERSION, Some(&data)));
    }
    let meta = value.get("_meta").and_then(|m| m.get("io.modelcontextprotocol/serverInfo"));
    Ok(Agreement {
        era: Era::Modern,
        version: MODERN.to_owned(),
        supported_versions: versions.into_iter().take(MAX_VERSIONS).collect(),
        capabilities: value.get("capabilities").cloned().unwrap_or_else(|| json!({})),
        server_info: value.get("serverInfo").or(meta).cloned(),
        instructions: instructions(&value),
    })
}

/// Reads an `InitializeResult`, naming every required field that is missing.
fn read_initialize(raw: &RawJson) -> Result<Agreement, Error> {
    let value = raw.parse()?;
    let missing: Vec<&str> = ["protocolVersion", "capabilities", "serverInfo"]
        .into_iter()
        .filter(|key| value.get(key).is_none_or(Value::is_null))
        .collect();
    let version = value.get("protocolVersion").and_then(Value::as_str);
    let (Some(version), true) = (version, missing.is_empty()) else {
        return Err(Error::protocol(format!(
            "the response to initialize lacks {}",
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
    fn raw(value: &Value) -> Result<RawJson, Error> {
        Ok(RawJson(serde_json::value::to_raw_value(value).unwrap()))
    }

    fn discovered() -> Result<RawJson, Error> {
        raw(&json!({ "supportedVersions": [MODERN], "capabilities": {} }))
    }

    fn initialized(version: &str) -> Result<RawJson, Error> {
        raw(
            &json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": { "name": "x" } }),
        )
    }

    fn refused(code: i64, supported: &[&str]) -> Result<RawJson, Error> {
        Err(Error::tool("no").with_rpc_error(code, Some(&json!({ "supported": supported }))))
    }

    fn auto() -> Lifecycle {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Auto, None);
        assert_eq!(lifecycle.start(), HandshakeRequest::Discover);
        lifecycle
    }

    #[track_caller]
    fn ready(action: HandshakeAction, era: Era) {
        match action {
            HandshakeAction::Ready(agreement) => assert_eq!(agreement.era, era),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn sends(action: &HandshakeAction, step: HandshakeRequest) {
        assert!(matches!(action, HandshakeAction::Send(s) if *s == step), "{action:?}");
    }

    #[test]
    fn a_modern_server_is_settled_by_discover() {
        ready(auto().handle(HandshakeEvent::Discover(discovered())), Era::Modern);
    }

    #[test]
    fn a_refused_discover_brings_initialize_on_the_same_pipe() {
        let mut lifecycle = auto();
        sends(
            &lifecycle.handle(HandshakeEvent::Discover(refused(-32601, &[]))),
            HandshakeRequest::Initialize(LEGACY),
        );
        ready(lifecycle.handle(HandshakeEvent::Initialize(initialized("2024-11-05"))), Era::Legacy);
    }

    #[test]
    fn an_answer_that_is_no_discover_result_counts_as_a_refusal() {
        sends(
            &auto().handle(HandshakeEvent::Discover(raw(&json!({})))),
            HandshakeRequest::Initialize(LEGACY),
        );
    }

    #[test]
    fn silence_brings_initialize_and_a_late_discover_still_wins() {
        let mut lifecycle = auto();
        sends(&lifecycle.handle(HandshakeEvent::Silence), HandshakeRequest::Initialize(LEGACY));
        assert!(matches!(lifecycle.handle(HandshakeEvent::Silence), HandshakeAction::Wait));
        ready(lifecycle.handle(HandshakeEvent::Discover(discovered())), Era::Modern);
    }

    #[test]
    fn a_server_that_dies_of_discover_is_started_once_more_with_initialize() {
        let mut lifecycle = auto();
        let gone = || HandshakeEvent::WireClosed(Error::unreachable("gone"));
        assert!(matches!(lifecycle.handle(gone()), HandshakeAction::Restart));
        assert_eq!(lifecycle.start(), HandshakeRequest::Initialize(LEGACY));
        assert!(matches!(lifecycle.handle(gone()), HandshakeAction::Fail(_)));
    }

    #[test]
    fn refusals_of_authority_are_final() {
        assert!(matches!(
            auto().handle(HandshakeEvent::WireClosed(Error::auth("401"))),
            HandshakeAction::Fail(_)
        ));
    }

    #[test]
    fn unknown_versions_are_named_on_both_sides() {
        for version in ["1999-01-01", "2099-12-31"] {
            let mut lifecycle = Lifecycle::new(ProtocolChoice::Legacy, None);
            lifecycle.start();
            let HandshakeAction::Fail(error) =
                lifecycle.handle(HandshakeEvent::Initialize(initialized(version)))
            else {
                panic!("accepted {version}")
            };
            assert_eq!(error.kind(), ErrorKind::Protocol);
            assert!(error.message().contains(version) && error.message().contains(LEGACY));
        }
    }

    #[test]
    fn missing_fields_are_named() {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Legacy, None);
        lifecycle.start();
        let HandshakeAction::Fail(error) =
            lifecycle.handle(HandshakeEvent::Initialize(raw(&json!({}))))
        else {
            panic!("accepted")
        };
        assert!(error.message().contains("protocolVersion, capabilities, serverInfo"));
    }

    #[test]
    fn an_unsupported_version_is_retried_once_with_one_that_is_supported() {
        let mut lifecycle = auto();
        sends(
            &lifecycle.handle(HandshakeEvent::Discover(refused(-32022, &[MODERN]))),
            HandshakeRequest::Discover,
        );
        let action = lifecycle.handle(HandshakeEvent::Discover(refused(-32022, &[MODERN])));
        assert!(matches!(action, HandshakeAction::Fail(_)));
        let mut lifecycle = auto();
        sends(
            &lifecycle.handle(HandshakeEvent::Discover(refused(-32022, &["2025-06-18"]))),
            HandshakeRequest::Initialize("2025-06-18"),
        );
    }

    #[test]
    fn a_remembered_era_is_tried_first_and_may_be_wrong() {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Auto, Some(Era::Legacy));
        assert_eq!(lifecycle.start(), HandshakeRequest::Initialize(LEGACY));
        sends(
            &lifecycle.handle(HandshakeEvent::Initialize(refused(-32601, &[]))),
            HandshakeRequest::Discover,
        );
        ready(lifecycle.handle(HandshakeEvent::Discover(discovered())), Era::Modern);
    }

    #[test]
    fn a_server_that_became_modern_and_dies_of_initialize_is_started_once_more() {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Auto, Some(Era::Legacy));
        lifecycle.start();
        sends(
            &lifecycle.handle(HandshakeEvent::Initialize(refused(-32601, &[]))),
            HandshakeRequest::Discover,
        );
        let gone = lifecycle.handle(HandshakeEvent::WireClosed(Error::unreachable("gone")));
        assert!(matches!(gone, HandshakeAction::Restart));
        assert_eq!(lifecycle.start(), HandshakeRequest::Discover);
        ready(lifecycle.handle(HandshakeEvent::Discover(discovered())), Era::Modern);
    }

    #[test]
    fn a_forced_era_never_falls_back_and_says_what_forces_it() {
        let mut lifecycle = Lifecycle::new(ProtocolChoice::Modern, Some(Era::Legacy));
        assert_eq!(lifecycle.start(), HandshakeRequest::Discover);
        assert!(matches!(lifecycle.handle(HandshakeEvent::Silence), HandshakeAction::Wait));
        let action = lifecycle.handle(HandshakeEvent::Discover(refused(-32601, &[])));
        let HandshakeAction::Fail(error) = action else { panic!("{action:?}") };
        assert!(error.hint().unwrap().contains("protocol: 2026-07-28"));
    }
}
