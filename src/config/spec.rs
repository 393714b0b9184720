//! The resolved configuration: the input of `assembly`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use super::consent::{Grant, ProjectRecord, Seal, TrustRequest};
pub use super::consent::{KindClaim, KindDescriptor};
pub use super::discover::FileRole;
pub use super::entries::{DisabledEntry, UntrustedEntry};
use super::expanded::ExpandedValues;
use super::node::{ConfigNode, SourceText};
pub use super::resolve::settings::DefaultsKeys;
use super::sandbox::SandboxSpec;
use super::typed::{self, words};
use super::watched_files::CodePatterns;
pub use crate::model::Layer;
use crate::model::{
    CredentialUse, Diagnostic, EntryOrigin, Root, ServerPermissions, SourceLocation,
    ToolDefinition, impl_as_str,
};
use crate::util::tls::TlsPem;

/// The combined result of all files of one load.
#[derive(Debug, Default)]
pub struct Configuration {
    /// Internal tools, in file order, of every kind. Entries out of service are not here.
    pub tools: Vec<ToolSpec>,
    /// MCP servers, in file order. Entries out of service are not here.
    pub servers: Vec<ServerSpec>,
    /// Named views of the catalogue.
    pub profiles: BTreeMap<String, ProfileSpec>,
    /// Rules about who may call what; first match wins.
    pub policy: Vec<PolicyRule>,
    /// Whether and where usage statistics are recorded.
    pub stats: RecordSpec,
    /// Whether and where the audit log is written.
    pub audit: RecordSpec,
    /// Whether and where calls are stored with arguments and results.
    pub history: RecordSpec,
    /// Named directories (`scopes:`), absolute, that file tools refer to.
    pub scopes: BTreeMap<String, PathBuf>,
    /// Errors and warnings about all files, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// Why nothing may be done with this configuration as a whole, if so: a file that was named
    /// cannot be read, or settings contradict each other. It is one of the diagnostics.
    pub unusable: Option<Diagnostic>,
    /// Entries that are out of service, with the reason.
    pub disabled: Vec<DisabledEntry>,
    pub untrusted: Vec<UntrustedEntry>,
    /// The open trust question; untrusted files do not act before it is answered.
    pub trust_request: Option<TrustRequest>,
    /// The root of the project that calls belong to, trusted or not, links resolved: for files
    /// named by a flag or a variable, the project that contains them; for an ad-hoc server, the
    /// project of the working directory. `None` if there is none.
    pub project_root: Option<PathBuf>,
    /// Whether files act because of this run's options: `--trust`, or naming them.
    /// That applies to their content as read; no stored answer covers other content.
    pub is_agreed_for_run: bool,
    /// The stored answer that allows the project to act; `None` if it acts without one, or not at
    /// all.
    pub trust_record: Option<Arc<ProjectRecord>>,
    /// The files that were read, in order of precedence.
    pub files: Vec<LoadedFile>,
    /// Those that cannot be read or parsed.
    pub unread: Vec<(PathBuf, Layer)>,
    pub searched: Vec<PathBuf>,
    /// The `discover:` directories, whose files are all read.
    pub directories: Vec<PathBuf>,
    /// Every value that replaced a reference, including those expanded while a tool is used.
    pub expanded: ExpandedValues,
    /// The handles that the files define, for entries that a program registers later.
    pub credential_sections: Vec<CredentialSection>,
}

impl Configuration {
    /// How many servers are out of service, of those that `is_asked` selects by name.
    pub fn count_broken_servers(&self, is_asked: impl Fn(&str) -> bool) -> usize {
        let servers = self.disabled.iter().filter(|entry| entry.role == FileRole::Servers);
        servers.filter(|entry| !entry.is_switched_off() && is_asked(&entry.name)).count()
    }

    /// The root of the project, if the user agreed to it.
    pub fn trusted_root(&self) -> Option<&Path> {
        self.trust_record.as_ref().map(|record| record.root.as_path())
    }

    /// The root of the project that calls belong to, as records spell it.
    pub fn project(&self) -> Option<String> {
        Some(self.project_root.as_ref()?.to_string_lossy().into_owned())
    }
}

/// The `credentials` of one file, unexpanded.
#[derive(Debug, Clone)]
pub struct CredentialSection {
    pub(in crate::config) node: ConfigNode,
    pub(in crate::config) layer: Layer,
    /// The proof that references in it may be replaced by values, if there is one.
    pub(in crate::config) grant: Option<Grant>,
    /// The directory that `${file:…}` is relative to.
    pub(in crate::config) base_dir: PathBuf,
}

#[derive(Debug, Clone)]
pub struct LoadedFile {
    /// The path; the embedded default has a fictitious one.
    pub path: PathBuf,
    /// Whether it contains tools or servers.
    pub role: FileRole,
    /// Which step of the search found the file; earlier layers take precedence.
    pub layer: Layer,
    pub text: Arc<SourceText>,
}

/// One internal tool, ready for its kind.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// The definition from the common keys; the kind may fill in what is missing.
    pub definition: ToolDefinition,
    pub kind: &'static str,
    /// The entry after expansion, for the keys that only the kind understands. Of a schema it has
    /// only the place.
    pub entry: Arc<ConfigNode>,
    /// The entry as written, before variables are expanded: it shows which values are
    /// references, and to what. The same tree if there was nothing to expand.
    pub unexpanded: Arc<ConfigNode>,
    /// The directory relative paths are relative to: that of the file.
    pub base_dir: PathBuf,
    /// The position in its file, for messages.
    pub location: SourceLocation,
    /// The defaults of its file, for kinds that have defaults of their own (`base_url`, …).
    pub defaults: Option<ConfigNode>,
    /// Named directories, as its file may use them: what a project's file defines for a name
    /// applies to the project's entries only, so that it cannot move an entry of the user.
    pub scopes: Arc<BTreeMap<String, PathBuf>>,
    /// The proof that it may act; `None` for a harmless entry of a project, which acts
    /// before the user has agreed.
    pub grant: Option<Grant>,
    /// What must be unchanged when it starts something.
    pub seal: Seal,
}

/// The keys of an entry that say what the arguments are.
pub const INPUT_SCHEMA_KEYS: &[&str] =
    &["parameters_schema", "parameters", "inputSchema", "input_schema", "param_schema_ref"];

/// The keys of an entry that say what the result is.
pub const OUTPUT_SCHEMA_KEYS: &[&str] = &["output_schema", "outputSchema", "response_schema_ref"];

impl ToolSpec {
    /// The defaults of its file.
    pub fn defaults(&self) -> DefaultsKeys {
        self.defaults.as_ref().and_then(typed::peek).unwrap_or_default()
    }
}

/// One MCP server, ready to be started or contacted.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// The key in the file; prefix of its tools' names.
    pub name: String,
    pub description: Option<String>,
    /// The program to start or the address to connect to.
    pub endpoint: Endpoint,
    /// Which protocol lifecycle is spoken (`protocol:`); `auto` by default.
    pub protocol: ProtocolChoice,
    /// Time limit between messages from the server; progress resets it.
    pub timeout: Option<Duration>,
    /// Time limit for a whole call; can only shorten the built-in 300 s.
    pub max_total: Option<Duration>,
    /// Time limit for starting and negotiating the protocol version.
    pub start_timeout: Option<Duration>,
    /// How long a background host keeps it idle; `None` does not start a host automatically.
    pub keep: Option<Duration>,
    /// Whether all clients of a host use one connection; otherwise each client session has its own.
    pub is_shared: bool,
    /// Tools, prompts and resources to exclude; patterns with `*`.
    pub exclude: Vec<String>,
    /// If set, only these tools; patterns with `*`.
    pub include: Option<Vec<String>>,
    pub roots: Vec<Root>,
    /// Share of calls when several servers offer the same tool; `None` if not set.
    pub routing_weight: Option<f64>,
    /// Whether the server is under development, so that changed definitions never block by default.
    pub is_dev: bool,
    /// What happens when a definition changed; `None` if not set.
    pub drift: Option<DriftPolicy>,
    /// The files whose changes restart it.
    pub watch: Option<CodePatterns>,
    pub provides_tools: Vec<ToolDefinition>,
    /// How often a failed attempt is retried, for tools marked safe to repeat.
    pub retries: u32,
    pub requires_approval: bool,
    /// What its program may access; `None` means everything the user can. Only for child processes.
    pub sandbox: Option<SandboxSpec>,
    /// What it may offer and use.
    pub permissions: ServerPermissions,
    /// The handles of the credentials it receives; their values are in `endpoint`.
    pub credentials: Vec<CredentialUse>,
    /// Names of variables that a call may set with `--context`.
    pub context_env: Arc<[String]>,
    /// The layer and declaration by which pins, logins and policy identify the entry.
    pub origin: Arc<EntryOrigin>,
    /// The position in its file, for messages.
    pub location: SourceLocation,
    /// What must be unchanged when it starts something.
    pub seal: Seal,
}

impl ServerSpec {
    /// What happens when a definition changed: as the entry says, otherwise it blocks, unless the
    /// server is under development.
    pub fn drift(&self) -> DriftPolicy {
        self.drift.unwrap_or(if self.is_dev { DriftPolicy::Allow } else { DriftPolicy::Block })
    }
}

/// What happens when a tool differs from its pin, or from an earlier listing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DriftPolicy {
    /// The call is refused until the definition is pinned again.
    #[default]
    Block,
    /// The tool is called, and the difference is shown.
    Warn,
    /// The tool is called without mentioning the difference.
    Allow,
}

impl_as_str!(DriftPolicy);

/// How to reach a server.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// A child process that speaks MCP on stdin and stdout.
    Stdio {
        /// The program, looked up in `PATH` if it has no slash.
        command: String,
        /// The arguments, passed one by one; no shell splits them.
        args: Vec<String>,
        /// Variables added to the clean environment.
        env: BTreeMap<String, SecretString>,
        /// Names of variables passed through from toolhost's own environment.
        env_keys: Vec<String>,
        /// The working directory, absolute; defaults to that of the file.
        cwd: PathBuf,
    },
    /// A URL or a Unix socket.
    Http {
        /// The endpoint; for a socket its host is `localhost`.
        url: url::Url,
        /// The Unix socket to connect to, instead of the URL's host.
        socket: Option<PathBuf>,
        transport: Transport,
        /// Extra headers, sent with every request.
        headers: Vec<(String, SecretString)>,
        /// How requests are authenticated, in addition to `headers`.
        auth: Box<AuthSpec>,
        /// Credentials may be sent over plain http (`insecure: true` in the user's own file).
        insecure: bool,
        tls: Box<TlsPem>,
    },
}

/// How messages travel.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schemars(transform = words::<Self>)]
pub enum Transport {
    /// What suits the endpoint; with an address Streamable HTTP or, if the server rejects it, HTTP+SSE.
    #[serde(skip)]
    #[default]
    Auto,
    Stdio,
    #[serde(alias = "streamable-http", alias = "streamable_http", alias = "streamableHttp")]
    Http,
    Sse,
    /// One message per line over the Unix socket.
    Lines,
    /// One message per frame, after a handshake over HTTP. The URL is that of the handshake, `http`
    /// or `https`, so that all rules for credentials hold.
    #[serde(alias = "ws")]
    WebSocket,
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one of each server, behind a pointer")]
pub enum AuthSpec {
    /// Not set: use a stored login, if there is one.
    Unset,
    /// Send no credentials, even if a login is stored.
    None,
    /// `Authorization: Bearer` with this token.
    Bearer {
        /// The token, read from `token_env_var`.
        token: SecretString,
        /// The variable it was read from, for messages.
        variable: Option<String>,
    },
    /// With a token of an authorization server.
    OAuth(OAuthSpec),
}

impl AuthSpec {
    /// The secret in it, with its name in messages.
    pub fn secret(&self) -> Option<(&str, &SecretString)> {
        let (name, secret) = match self {
            Self::Unset | Self::None => return None,
            Self::Bearer { token, variable } => (variable.as_deref().unwrap_or("token"), token),
            Self::OAuth(oauth) => ("client_secret", oauth.grant.client_secret()?),
        };
        Some((name, secret))
    }
}

#[derive(Debug, Clone)]
pub struct OAuthSpec {
    pub grant: OAuthGrant,
    /// The scopes; empty means those the server names.
    pub scopes: Vec<String>,
    /// The only issuer whose tokens are accepted.
    pub issuer: Option<url::Url>,
    /// The only port of 127.0.0.1 a login may end at.
    pub redirect_port: Option<u16>,
}

/// On what grounds a token is given.
#[derive(Debug, Clone)]
pub enum OAuthGrant {
    /// A person logs in (authorization code with PKCE).
    Login {
        /// A client that was registered in advance. Without one, the document at `client_metadata`
        /// is the identity where that is supported, and else toolhost registers itself.
        client_id: Option<String>,
        client_secret: Option<SecretString>,
        client_metadata: Option<url::Url>,
    },
    /// As a program, without a user (client credentials).
    Program {
        client_id: String,
        client_secret: SecretString,
        /// Where tokens are; found like everything else when it is not written down.
        token_url: Option<url::Url>,
    },
}

impl Default for OAuthGrant {
    fn default() -> Self {
        Self::Login { client_id: None, client_secret: None, client_metadata: None }
    }
}

impl OAuthGrant {
    fn client_secret(&self) -> Option<&SecretString> {
        match self {
            Self::Login { client_secret, .. } => client_secret.as_ref(),
            Self::Program { client_secret, .. } => Some(client_secret),
        }
    }
}

/// The protocol lifecycle to use with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename = "Protocol", rename_all = "lowercase")]
#[schemars(transform = words::<Self>)]
pub enum ProtocolChoice {
    /// Detect it when connecting, and cache the result.
    #[default]
    Auto,
    /// The handshake with `initialize`, up to revision 2025-11-25.
    Legacy,
    /// Stateless with `server/discover`, from revision 2026-07-28.
    #[serde(rename = "2026-07-28", alias = "modern")]
    Modern,
}

/// A named view of the catalogue.
#[derive(Debug, Clone, Default)]
pub struct ProfileSpec {
    /// Only names that match one of these patterns; empty means all.
    pub include: Vec<String>,
    /// Names that match one of these patterns are excluded, even if `include` matches.
    pub exclude: Vec<String>,
    /// Only tools of these servers; empty means all.
    pub servers: Vec<String>,
    /// Only these categories; empty means all.
    pub categories: Vec<String>,
    /// Only these safety levels; empty means all.
    pub safety: Vec<String>,
}

/// One rule about which calls run, need a person, or are refused.
#[derive(Debug, Clone)]
pub struct PolicyRule {
    /// A pattern over full names.
    pub pattern: String,
    /// What happens when a matching tool is called.
    pub action: PolicyAction,
    /// The root of the project whose entries the rule applies to, links resolved. Without one, a
    /// rule that allows applies to the user's own entries, and any other rule to all entries.
    pub project: Option<PathBuf>,
    /// The position in its file, for messages.
    pub location: SourceLocation,
}

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename = "Action", rename_all = "lowercase")]
pub enum PolicyAction {
    /// Run the call without asking.
    Allow,
    /// Ask the user before the call runs.
    Ask,
    /// Refuse the call without asking.
    Deny,
}

/// Settings of a record (statistics, audit).
#[derive(Debug, Clone)]
pub struct RecordSpec {
    /// Whether anything is recorded; `true` by default.
    pub enabled: bool,
    /// Where to store it, if not in the state directory.
    pub path: Option<PathBuf>,
    /// Whether each line is synced to disk (`fsync`).
    pub sync: bool,
    pub retention: Duration,
    /// Settings of a project's file that were ignored, with their locations.
    pub ignored: Vec<Diagnostic>,
}

impl Default for RecordSpec {
    fn default() -> Self {
        let retention = Duration::from_hours(90 * 24);
        Self { enabled: true, path: None, sync: false, retention, ignored: Vec::new() }
    }
}
