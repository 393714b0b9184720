//! Tool definitions: schema, origin, hints about speed and safety, status.
//!
//! The tools a provider lists at one moment.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use strum::IntoStaticStr;

use super::diagnostic::{Diagnostic, SourceLocation};
use super::entry::EntryOrigin;
use super::error::Error;
use super::name::ToolName;
use super::permissions::{CredentialUse, WithheldItem};
use super::tool_schema::ToolSchema;
use crate::util::confine::Coverage;

/// How fast a tool says it is; sets the default timeout.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum Speed {
    /// About at once: 1 s.
    Instant,
    /// Expected to respond within 5 s.
    Fast,
    /// Expected to respond within 30 s.
    #[default]
    Medium,
    /// May take up to 300 s.
    Slow,
}

impl Speed {
    /// The timeout of a tool that sets none.
    pub fn default_timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Instant => 1,
            Self::Fast => 5,
            Self::Medium => 30,
            Self::Slow => 300,
        })
    }

    /// Parses the word used in files.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Instant, Self::Fast, Self::Medium, Self::Slow]
            .into_iter()
            .find(|s| s.as_str() == word)
    }
}

/// How a tool is isolated while it runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Safety {
    /// With the user's own rights (the default of internal tools).
    #[default]
    Native,
    /// Confined as far as the system can.
    Sandboxed,
    /// On the other side of a protocol (the default of MCP tools).
    External,
}

impl Safety {
    /// Parses the word used in files.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Native, Self::Sandboxed, Self::External].into_iter().find(|s| s.as_str() == word)
    }
}

/// Which half of the catalogue a tool belongs to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ToolSource {
    /// Declared in a `tools.yaml` and run by toolhost.
    #[default]
    Internal,
    /// Offered by an MCP server.
    Mcp,
}

/// Whether a tool exists once or once per session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ToolScope {
    /// One tool shared by all sessions.
    #[default]
    Global,
    /// Created for each session, with that session's context.
    Session,
}

/// What the catalogue knows about a tool right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ToolStatus {
    /// Seen on its live source, or local and ready.
    #[default]
    Live,
    /// Declared in `provides_tools`; its server was not asked.
    Declared,
    /// Live, but different from its declaration.
    Drifted,
    /// Live, but different from its pin.
    Changed,
    /// Cannot be called; the reason is in [`ToolDefinition::unavailable_reason`].
    Unavailable,
    /// An entry of an untrusted project.
    Untrusted,
    /// Live, but its schema could not be compiled, so arguments are not checked.
    Unchecked,
}

/// How a tool compares with its pin.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub enum PinState {
    /// It has no pin, or was not compared with it.
    #[default]
    NotPinned,
    /// It is what was pinned.
    Matches,
    /// It is not what was pinned. Contains the error that refuses a call, with the difference.
    Changed(Error),
}

impl PinState {
    /// The word used in output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotPinned => "none",
            Self::Matches => "same",
            Self::Changed(_) => "changed",
        }
    }
}

/// What a tool claims about its effects (MCP tool annotations). `None` means no claim.
///
/// These are claims of the tool's author: they may raise caution, never lower it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Annotations {
    /// A display name, used instead of the technical one.
    pub title: Option<String>,
    /// Whether it claims to change nothing (`readOnlyHint`).
    pub read_only: Option<bool>,
    /// Whether it says it may destroy something (`destructiveHint`).
    pub destructive: Option<bool>,
    /// Calling it twice is the same as calling it once.
    pub idempotent: Option<bool>,
    /// It interacts with the outside world (`openWorldHint`).
    pub open_world: Option<bool>,
}

/// Where a definition was read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub enum Origin {
    /// An entry of a configuration file.
    File(SourceLocation),
    /// Reported by the named server.
    Server(String),
    /// Registered by the program that toolhost is part of.
    #[default]
    Program,
}

/// Everything the catalogue knows about one tool.
///
/// Text from a server is kept as sent and made safe when shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name by which it is listed and called.
    pub name: ToolName,
    /// Other full names a call may use; they are never listed.
    pub aliases: Vec<ToolName>,
    /// A display name, used instead of the technical one.
    pub title: Option<String>,
    /// What it does, as described by its author.
    pub description: Option<String>,
    /// JSON Schema of the arguments; `{"type":"object"}` if none was given.
    pub input_schema: ToolSchema,
    /// JSON Schema of the structured result.
    pub output_schema: Option<ToolSchema>,
    /// The heading it is listed under.
    pub category: Option<String>,
    /// The speed it declares, which sets the default timeout.
    pub speed: Speed,
    /// Whether its entry, or its declaration among a server's `provides_tools`, says how fast it is.
    #[serde(default)]
    pub has_declared_speed: bool,
    /// How the tool is isolated while it runs.
    pub safety: Safety,
    /// Whether a file or an MCP server declares it.
    pub source: ToolSource,
    /// The provider kind: `builtin`, `command`, `mcp`, …
    pub kind: Cow<'static, str>,
    /// Its own timeout for an attempt (internal) or idle timeout (MCP); `None` falls through to the
    /// next rule.
    pub timeout: Option<Duration>,
    /// Limit for a whole call, including attempts and pauses. `None` uses the built-in 300 s, which
    /// can be shortened but not extended.
    pub max_total: Option<Duration>,
    /// Maximum number of retries after a failed attempt.
    pub retries: u32,
    /// The pause after the first failed attempt, doubled after each further one; `None` is 0.5 s.
    pub backoff: Option<Duration>,
    /// Whether its author marked it safe to repeat (`idempotentHint` or `readOnlyHint` in a file).
    pub is_repeatable: bool,
    /// Whether the tool's own entry sets `retries`: its author's word that a repeat is fine.
    #[serde(default)]
    pub has_own_retries: bool,
    /// Its server runs it only as a task (`execution.taskSupport: required`).
    #[serde(default)]
    pub requires_task: bool,
    /// A person is asked before each call.
    pub requires_approval: bool,
    /// Global or made for each session.
    pub scope: ToolScope,
    /// The author's version of the definition.
    pub version: Option<String>,
    /// What it claims about its effects.
    pub annotations: Annotations,
    /// The definition exactly as an MCP server sent it, including unknown fields, as text: as a
    /// tree it would double the memory of a large catalogue.
    pub raw: Option<Arc<RawValue>>,
    /// The file, server or program that the definition comes from.
    pub origin: Origin,
    /// The entry it comes from; `None` for tools that the embedding program registered.
    #[doc(hidden)] // for the program's own views
    pub entry: Option<Arc<EntryOrigin>>,
    /// Names of variables that a call may set (`context_env` of the entry), in addition to
    /// `TOOLHOST_*`.
    pub context_env: Arc<[String]>,
    /// The credentials used for a call, by their handles.
    #[doc(hidden)] // for the program's own views
    pub credentials: Arc<[CredentialUse]>,
    /// Whether it can be called now, and how reliable its definition is.
    pub status: ToolStatus,
    /// Why it cannot be called, if so.
    pub unavailable_reason: Option<Error>,
    /// The result of comparing it with its pin.
    pub pin_state: PinState,
    /// Warnings about the definition, such as a schema that cannot be checked.
    pub warnings: Vec<String>,
    /// What a call may touch, as text: the program it starts, the directory it works in.
    pub touches: Vec<String>,
    /// What its sandbox blocks and leaves open; `None` without a sandbox.
    #[doc(hidden)] // for the program's own views
    pub sandbox: Option<Arc<Coverage>>,
    /// The tools it calls, by the names its definition uses; empty if it calls none or does not
    /// say.
    pub calls: Vec<String>,
}

impl ToolDefinition {
    /// The program behind the tool, see [`EntryOrigin::program_id`]; `None` for tools without an
    /// entry in a file.
    #[doc(hidden)] // for the program's own commands
    pub fn program(&self) -> Option<String> {
        self.entry.as_ref().map(|entry| entry.program_id())
    }

    /// The end of a command line that names its server, with a leading space; empty for everything
    /// defined in a file.
    #[doc(hidden)] // for the program's own commands
    pub fn command_end(&self) -> String {
        let end = self.entry.as_ref().and_then(|entry| entry.command_end.as_ref());
        end.map_or_else(String::new, |text| format!(" {text}"))
    }

    /// Its declared speed; `None` for a tool of a server whose entry in `provides_tools` declares
    /// none, because servers do not declare a speed themselves.
    pub fn declared_speed(&self) -> Option<Speed> {
        let is_declared = self.source == ToolSource::Internal || self.has_declared_speed;
        is_declared.then_some(self.speed)
    }

    /// Whether a failed attempt may be followed by another: its author marked it safe to repeat, or
    /// gave its entry `retries`, which is not enough for a tool that asks first or may destroy.
    pub fn may_repeat(&self) -> bool {
        let needs_mark = self.requires_approval || self.annotations.destructive == Some(true);
        self.is_repeatable || (self.has_own_retries && !needs_mark)
    }

    /// The server under which calls of the tool are recorded; `None` for tools of other kinds.
    pub fn server(&self) -> Option<&str> {
        self.name.component().filter(|_| self.source == ToolSource::Mcp)
    }

    /// Takes the tool out of service, with the reason.
    pub fn mark_unavailable(&mut self, reason: Error) {
        // An untrusted entry stays untrusted, whatever else is wrong with it.
        if self.status != ToolStatus::Untrusted {
            self.status = ToolStatus::Unavailable;
        }
        self.unavailable_reason = Some(reason);
    }

    /// The definition sent by an MCP server, as a tree; `None` for tools from a file.
    pub fn raw_value(&self) -> Option<Value> {
        serde_json::from_str(self.raw.as_ref()?.get()).ok()
    }

    /// A definition with only a name; everything else has its default.
    pub fn new(name: ToolName, source: ToolSource, kind: &'static str, origin: Origin) -> Self {
        let safety = match source {
            ToolSource::Internal => Safety::Native,
            ToolSource::Mcp => Safety::External,
        };
        Self { name, safety, source, kind: kind.into(), origin, ..Self::default() }
    }
}

/// Tools, with the problems of those that were left out.
#[derive(Debug, Clone, Default)]
pub struct ToolListing {
    /// The tools, in their owner's order.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Skipped items, and warnings. One bad item does not affect the others.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether something is missing from `tools` (a page, an item, a limit reached).
    pub is_partial: bool,
    /// Tools that the server offers and the entry withholds.
    pub withheld: Vec<WithheldItem>,
}
