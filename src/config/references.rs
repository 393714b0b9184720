//! References to variables and files in values: their syntax, where each is allowed, those that editors
//! support, and which variables only hold data.

use std::collections::BTreeMap;
use std::path::Path;

use super::environment::Environment;
use super::node::{ConfigNode, NodeValue};
use super::secrets::{looks_secret, names_secret};
use super::typed::Located;
use crate::model::Diagnostic;
use crate::util::text::{is_one_of, variable_name};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedReferences {
    /// Only `${VAR}` and a leading `~`.
    Variables,
    /// Also `${file:…}`: values that are secrets.
    Secrets,
}

/// What a key's children may contain, from the list that applies to every entry.
pub fn allowed_in(key: &str) -> Option<AllowedReferences> {
    match key {
        "headers" | "auth" | "oauth" | "env" => Some(AllowedReferences::Secrets),
        "command" | "args" | "cwd" | "url" | "baseUrl" | "serverUrl" | "httpUrl"
        | "endpoint_url" | "base_url" | "root_dir" | "scopes" | "path" | "paths" | "discover"
        | "server_path" | "roots" | "sandbox" | "envFile" | "tls" => {
            Some(AllowedReferences::Variables)
        }
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferencePiece<'t> {
    Text(&'t str),
    /// `$${`, which stands for `${`.
    Escaped,
    /// The text between `${` and `}`.
    Reference(&'t str),
    /// A `${` without its `}`; always the last piece.
    Unclosed,
}

pub fn pieces(text: &str) -> Vec<ReferencePiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (before, escaped) = match before.strip_suffix('$') {
            Some(before) => (before, true),
            None => (before, false),
        };
        if !before.is_empty() {
            pieces.push(ReferencePiece::Text(before));
        }
        if escaped {
            pieces.push(ReferencePiece::Escaped);
            rest = after;
        } else if let Some((reference, tail)) = after.split_once('}') {
            pieces.push(ReferencePiece::Reference(reference));
            rest = tail;
        } else {
            pieces.push(ReferencePiece::Unclosed);
            return pieces;
        }
    }
    if !rest.is_empty() {
        pieces.push(ReferencePiece::Text(rest));
    }
    pieces
}

pub fn variable(reference: &str) -> Option<&str> {
    let named = reference.strip_prefix("env:").unwrap_or(reference);
    let name = named.split_once(":-").map_or(named, |(name, _)| name);
    (!name.contains(':')).then_some(name)
}

/// Whether a text contains a reference, so that it depends on where it is loaded.
pub fn has_reference(text: &str) -> bool {
    text.contains("${")
}

/// Whether expanding a text could change it: it contains a reference or starts with `~`.
pub fn needs_expansion(text: &str) -> bool {
    has_reference(text) || text.starts_with('~')
}

/// Whether nothing in the value depends on where it is loaded: no reference, no `~`.
pub fn is_literal(node: &ConfigNode) -> bool {
    let mut is_literal = true;
    node.for_each_leaf(&mut |_, leaf| {
        is_literal &= !matches!(&leaf.value, NodeValue::Text(text) if needs_expansion(text));
    });
    is_literal
}

/// Every reference at or below `node` with the paths of its keys. Names of variables
/// without `${}` (`…_env_var`, `env_keys`) are included.
pub fn of(node: &ConfigNode) -> BTreeMap<String, Vec<String>> {
    let mut references: BTreeMap<String, Vec<String>> = BTreeMap::new();
    node.for_each_leaf(&mut |path, leaf| {
        let NodeValue::Text(text) = &leaf.value else { return };
        let mut add = |reference: &str| {
            let places = references.entry(format!("${{{reference}}}")).or_default();
            if places.last().is_none_or(|last| last != path) {
                places.push(path.to_owned());
            }
        };
        for piece in pieces(text) {
            if let ReferencePiece::Reference(reference) = piece {
                add(reference);
            }
        }
        let key = path.rsplit('.').next().unwrap_or_default();
        if key.ends_with("_env_var") || key == "env_keys" {
            add(text);
        }
    });
    references
}

/// The value of a reference to a directory, as editors define it: the directory `base` of the file
/// that contains it, its name, or the home directory. Such a reference reveals no user data.
pub fn place(reference: &str, base: &Path, environment: &dyn Environment) -> Option<String> {
    let place = match reference {
        "workspaceFolder" | "workspaceRoot" => base.to_string_lossy(),
        "workspaceFolderBasename" => base.file_name()?.to_string_lossy(),
        "userHome" => return Some(environment.home()?.to_string_lossy().into_owned()),
        "pathSeparator" | "/" => "/".into(),
        _ => return None,
    };
    Some(place.into_owned())
}

pub fn input_variable(input: &str) -> String {
    format!("TOOLHOST_INPUT_{}", variable_name(input))
}

/// The variables that a program gets without its entry naming them.
pub const PASSED_TO_PROGRAMS: [&str; 10] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Last words of the names of settings: what they hold is data to whoever reads it.
const DATA: &str = "ACCOUNT BUCKET CHANNEL CLUSTER CREDENTIALS CUSTOMER DATABASE DB DEBUG DOMAIN \
    DSN EMAIL ENDPOINT ENVIRONMENT FORMAT HOST ID IDS LANGUAGE LEVEL LIMIT LOCALE LOGIN MODEL \
    NAME NAMESPACE ORG ORGANIZATION OWNER PAT PORT PROJECT REGION REPOSITORY SCHEMA SIZE STRING \
    TEAM TENANT TICKET TIMEOUT TIMEZONE URI URL USER WORKSPACE";

/// First words of the names of settings, whatever follows: no interpreter or tool uses them.
const FREE: [&str; 2] = ["APP", "MCP"];

/// First words of the names that interpreters, loaders, shells, package runners and what fetches
/// code for them read: `UV_INDEX_URL`, `DOCKER_HOST` and `R_PROFILE_USER` end like settings.
const TOOLS: &str = "ANSIBLE BASH BUILDKIT BUN BUNDLE BUNDLER CARGO COMPOSE COMPOSER CONDA \
    CONTAINER COREPACK DENO DOCKER DOTNET ELECTRON GEM GIT GO GRADLE HELM HF HOMEBREW JAVA JSR \
    JULIA KUBE LD LUA MAVEN NIX NODE NPM NUGET NVM PERL PHP PIP PIPX PIXI PLAYWRIGHT PNPM PODMAN \
    POETRY PUPPETEER PYTHON R RUBY RUSTUP TOOLHOST UV YARN";

const READ_BY_TOOLHOST: &str = "TOOLHOST_TOOLS TOOLHOST_MCP TOOLHOST_TRUST \
    TOOLHOST_ENCRYPTION_KEY TOOLHOST_KEYCHAIN TOOLHOST_SERVE_TOKEN TOOLHOST_LOG";

/// Variables that tell a tool about its call: only toolhost sets them.
const SET_BY_TOOLHOST: &str = "TOOLHOST_CALL_ID TOOLHOST_SESSION_ID TOOLHOST_USER TOOLHOST_CWD \
    TOOLHOST_CONTEXT TOOLHOST_EVENTS_FD";

pub fn is_set_by_toolhost(name: &str) -> bool {
    is_one_of(name, SET_BY_TOOLHOST)
}

/// Whether a variable only holds data, by its name: a secret's name (`…_TOKEN`, `…_KEY`), a last word
/// like `…_ID` or `…_URL` unless a tool's own name stands first, or `APP_…` and `MCP_…`. Calls, files of
/// variables and credentials may set no others, because nobody is shown their values: any other name
/// may be one that some interpreter, loader or package runner takes code from.
pub fn is_setting(name: &str) -> bool {
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if !is_name(name) || !name.chars().all(is_upper) {
        return false;
    }
    let first = name.split('_').next().unwrap_or_default();
    let last = name.rsplit('_').next().unwrap_or_default();
    let is_secret =
        names_secret(name) || ["PASSWORD", "USERNAME"].iter().any(|word| name.ends_with(word));
    is_secret
        || FREE.contains(&first) && name != first
        || is_one_of(last, DATA) && !is_one_of(first, TOOLS)
}

/// Whether the system supports a variable with this name, and every shell can refer to it.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The value of the variable that a key of `auth` names.
pub fn named_in_auth(
    named: &Located<String>,
    key: &str,
    lookup: impl FnOnce(&str) -> Option<String>,
) -> Result<String, Diagnostic> {
    let name = named.as_str();
    if !is_name(name) || looks_secret(name) {
        // Not quoted: it may be the secret.
        return Err(named
            .error(format!("'{key}' takes the name of a variable, not a value"))
            .with_hint("put the value into a variable and name that"));
    }
    lookup(name).filter(|value| !value.trim().is_empty()).ok_or_else(|| {
        let message = format!("in 'auth.{key}': the variable {name} is not set");
        named.error(message).with_hint(format!("set {name}"))
    })
}

/// Whether a call may set a variable: one that its entry declares, or one of toolhost's own.
pub fn call_may_set(name: &str, declared: &[String]) -> bool {
    if name.starts_with("TOOLHOST_") {
        return is_name(name) && !is_set_by_toolhost(name) && !is_one_of(name, READ_BY_TOOLHOST);
    }
    is_setting(name) && declared.iter().any(|declared| declared == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    #[test]
    fn references_are_found_wherever_they_stand() {
        let text = "roots: ['https://x/${A}']\nauth: { token_env_var: B }\nenv_keys: [C, D]\n\
                    x: { y: { z: 'a${A}b${file:f}' } }\nplain: '$${E}'\n";
        let node = parse(&SourceText::new("f", text), text).unwrap();
        let references: Vec<(String, String)> =
            of(&node).into_iter().map(|(name, places)| (name, places.join(" "))).collect();
        let expected = [
            ("${A}", "roots x.y.z"),
            ("${B}", "auth.token_env_var"),
            ("${C}", "env_keys"),
            ("${D}", "env_keys"),
            ("${file:f}", "x.y.z"),
        ];
        assert_eq!(references, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(!is_literal(&node));
    }

    #[test]
    fn names_that_somebody_takes_code_from_are_no_settings() {
        for name in "LD_PRELOAD DYLD_INSERT_LIBRARIES PYTHONUSERBASE PYTHONPATH NODE_OPTIONS NODE_PATH \
                     BASH_ENV ENV BASH_FUNC_ls%% PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS JAVA_HOME CLASSPATH \
                     GIT_SSH_COMMAND SSL_CERT_FILE HTTPS_PROXY http_proxy PATH HOME SHELL IFS EDITOR \
                     npm_config_registry NPM_CONFIG_REGISTRY NPM_CONFIG_SCRIPT_SHELL YARN_RC_FILENAME \
                     UV_INDEX_URL UV_DEFAULT_INDEX UV_PYTHON UV_PROJECT PIP_INDEX_URL PIP_CONFIG_FILE \
                     BUN_CONFIG_REGISTRY JSR_URL DENO_DIR GOPROXY GOFLAGS GOROOT DOCKER_HOST \
                     CONTAINER_HOST OPENSSL_CONF DOTNET_STARTUP_HOOKS CORECLR_PROFILER_PATH \
                     PLAYWRIGHT_DOWNLOAD_HOST PUPPETEER_DOWNLOAD_BASE_URL R_PROFILE_USER JULIA_PROJECT \
                     XDG_CONFIG_HOME KUBECONFIG LESSOPEN LESSKEY PROMPT_COMMAND TOOLHOST_TRUST \
                     RUSTUP_DIST_SERVER CARGO_BUILD_RUSTC_WRAPPER LC_ALL PWD APP MCP _JAVA_OPTIONS \
                     github_token 9_TOKEN"
            .split_whitespace()
        {
            assert!(!is_setting(name), "{name}");
            assert!(!call_may_set(name, &[name.to_owned()]), "{name}");
        }
    }

    #[test]
    fn tokens_addresses_and_settings_of_servers_are_settings() {
        for name in
            "GITHUB_PERSONAL_ACCESS_TOKEN BRAVE_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY \
                     AWS_REGION SLACK_TEAM_ID DATABASE_URL MONGODB_URI POSTGRES_CONNECTION_STRING \
                     POSTGRES_USER PGPASSWORD JIRA_URL JIRA_USERNAME OPENAI_BASE_URL SENTRY_HOST \
                     GOOGLE_CLOUD_PROJECT LOG_LEVEL PORT TICKET TENANT NPM_TOKEN HF_TOKEN APP_MODE \
                     MCP_FEATURES GITHUB_PAT"
                .split_whitespace()
        {
            assert!(is_setting(name), "{name}");
        }
    }

    #[test]
    fn a_call_sets_what_is_declared_and_what_is_toolhosts_own() {
        let declared = ["TICKET".to_owned()];
        assert!(call_may_set("TICKET", &declared));
        assert!(call_may_set("TOOLHOST_TENANT", &declared));
        for name in ["TENANT", "ticket", "", "TOOLHOST_x%%", "TOOLHOST_USER", "TOOLHOST_TRUST"] {
            assert!(!call_may_set(name, &declared), "{name}");
        }
    }
}
