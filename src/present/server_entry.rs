//! A server's entry: what its file says, the effective settings, and the state of its pins.

use crate::catalogue::pins::{PinReport, PinReportState};
use crate::catalogue::scan::Finding;
use crate::config::spec::{AuthSpec, Endpoint, OAuthGrant, ProtocolChoice, ServerSpec};
use crate::model::Root;
use crate::present::{Page, Role, caret, plural};
use crate::util::units::{show_duration, show_span};

const MOST: usize = 20;

pub struct ServerEntryView<'a> {
    pub spec: &'a ServerSpec,
    /// Its tools compared with their pins; `None` when it has none.
    pub pins: Option<&'a PinReport>,
    /// How many of its tools have findings that are more than notes.
    pub flagged: usize,
    pub instructions: &'a [Finding],
}

impl ServerEntryView<'_> {
    pub fn facts(&self, page: &mut Page, width: Option<usize>) {
        let spec = self.spec;
        page.heading("Entry");
        let mut fact = |key: &str, value: &str| page.field(key, Role::Plain, value, width);
        fact("defined in", &caret::location(&spec.location));
        fact(
            "protocol",
            match spec.protocol {
                ProtocolChoice::Auto => "auto-detected, cached",
                ProtocolChoice::Legacy => "legacy only",
                ProtocolChoice::Modern => "2026-07-28 only",
            },
        );
        fact("credentials", &credentials(spec).unwrap_or_default());
        for (at, line) in spec.permissions.lines().iter().enumerate() {
            fact(if at == 0 { "permissions" } else { "" }, line);
        }
        fact("limits", &limits(spec).join(", "));
        if spec.retries > 0 {
            fact("retries", &format!("{}, for tools marked safe to repeat", spec.retries));
        }
        if spec.requires_approval {
            fact("approval", "required before each call");
        }
        match spec.routing_weight {
            Some(weight) if weight >= 1.0 => fact("weight", &format!("{weight}, primary")),
            Some(weight) => fact("weight", &format!("{weight}, backup")),
            None => {}
        }
        list_facts(&mut fact, "only", spec.include.as_deref().unwrap_or_default());
        list_facts(&mut fact, "without", &spec.exclude);
        let roots: Vec<String> = spec.roots.iter().map(shown_root).collect();
        list_facts(&mut fact, "roots", &roots);
        if !spec.provides_tools.is_empty() {
            fact("declares", &plural(spec.provides_tools.len(), "tool", "tools"));
        }
        if let Some(keep) = spec.keep {
            fact("keep", &format!("warm for {} after a call", show_span(keep)));
        }
        if !spec.is_shared {
            fact("shared", "no, each client session has its own connection");
        }
        fact("drift", drift(spec));
        fact("pins", &self.pins.map_or_else(|| "none".to_owned(), pinned));
        if self.flagged > 0 {
            let tools = plural(self.flagged, "tool is", "tools are");
            fact("suspicious", &format!("{tools}; 'toolhost list --flagged' says why"));
        }
    }
}

fn shown_root(root: &Root) -> String {
    match &root.name {
        Some(name) => format!("{} ({name})", root.uri),
        None => root.uri.clone(),
    }
}

fn list_facts(fact: &mut impl FnMut(&str, &str), key: &str, values: &[String]) {
    for (at, value) in values.iter().take(MOST).enumerate() {
        fact(if at == 0 { key } else { "" }, value);
    }
    if let Some(hidden @ 1..) = values.len().checked_sub(MOST) {
        fact("", &format!("and {hidden} more, see --json"));
    }
}

/// How it authenticates; never a secret value.
pub fn credentials(spec: &ServerSpec) -> Option<String> {
    let handles: Vec<String> =
        spec.credentials.iter().map(|used| format!("the credential {used}")).collect();
    match &spec.endpoint {
        _ if !handles.is_empty() => Some(handles.join("; ")),
        Endpoint::Http { headers, auth, .. } => {
            let mut parts = Vec::new();
            parts.extend(match &**auth {
                AuthSpec::None => None,
                AuthSpec::Unset => Some("a stored login, if any".to_owned()),
                AuthSpec::Bearer { variable: Some(name), .. } => {
                    Some(format!("a bearer token from {name}"))
                }
                AuthSpec::Bearer { variable: None, .. } => {
                    Some("a bearer token from the file".to_owned())
                }
                AuthSpec::OAuth(oauth) => Some(match &oauth.grant {
                    OAuthGrant::Login { .. } => "a login (OAuth)".to_owned(),
                    OAuthGrant::Program { client_id, .. } => {
                        format!("as the client {client_id} (OAuth, client credentials)")
                    }
                }),
            });
            if !headers.is_empty() {
                let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
                parts.push(format!("headers {}", names.join(", ")));
            }
            Some(if parts.is_empty() { "none".to_owned() } else { parts.join("; ") })
        }
        Endpoint::Stdio { env, env_keys, .. } => {
            let names: Vec<&str> =
                env.keys().map(String::as_str).chain(env_keys.iter().map(String::as_str)).collect();
            (!names.is_empty()).then(|| format!("variables {}", names.join(", ")))
        }
    }
}

fn limits(spec: &ServerSpec) -> Vec<String> {
    let mut parts = Vec::new();
    for (value, what) in [
        (spec.timeout, "of silence"),
        (spec.max_total, "per call"),
        (spec.start_timeout, "to start"),
    ] {
        parts.extend(value.map(|value| format!("{} {what}", show_duration(value))));
    }
    if parts.is_empty() {
        parts.push("built-in defaults".to_owned());
    }
    parts
}

fn drift(spec: &ServerSpec) -> &'static str {
    match (spec.drift(), spec.drift.is_none() && spec.is_dev) {
        (crate::config::spec::DriftPolicy::Block, _) => "block: refuse to call a tool that changed",
        (crate::config::spec::DriftPolicy::Warn, _) => {
            "warn: call a tool that changed, with a warning"
        }
        (crate::config::spec::DriftPolicy::Allow, true) => {
            "allow: the server is under development (dev)"
        }
        (crate::config::spec::DriftPolicy::Allow, false) => "allow: call a tool that changed",
    }
}

pub fn pinned_count(report: &PinReport) -> usize {
    report.tools.iter().filter(|tool| tool.pinned.is_some()).count()
}

pub fn state(report: &PinReport) -> &'static str {
    let changed = report.count(PinReportState::Changed)
        + report.count(PinReportState::Missing)
        + report.servers.len();
    match (changed, pinned_count(report)) {
        (_, 0) => "none",
        (0, _) => "same",
        _ => "changed",
    }
}

fn pinned(report: &PinReport) -> String {
    let parts: Vec<&str> =
        report.servers.iter().flat_map(|server| &server.changes).map(|c| c.part).collect();
    let mut text = format!("{} pinned", plural(pinned_count(report), "tool is", "tools are"));
    for (state, what) in [
        (PinReportState::Changed, "changed"),
        (PinReportState::Missing, "gone"),
        (PinReportState::New, "new"),
    ] {
        match report.count(state) {
            0 => {}
            count => text = format!("{text}, {count} {what}"),
        }
    }
    if !parts.is_empty() {
        text.extend(["; its ", &parts.join(" and "), " changed"]);
    }
    text
}
