//! Export of a plan as a locustfile, so that Locust's distributed engine can generate the load.

use serde_json::{Value, json};

use crate::bench::plan::{BenchPlan, LoadModel};
use crate::model::{Error, JsonObject};
use crate::util::json::pretty;
use crate::util::text::variable_name;

const RUNNER: &str = include_str!("runner.py");

/// The newest revision of the legacy era, which a server may lower.
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

const MOST_ROWS: usize = 10_000;

#[derive(Debug, Clone, PartialEq)]
pub struct LocustTarget {
    pub name: String,
    /// The name that the server knows it by.
    pub tool: String,
    pub url: String,
    /// The protocol revision that was agreed on; without one the legacy handshake decides.
    pub protocol: Option<String>,
    pub headers: Vec<LocustHeader>,
    pub arguments: Vec<JsonObject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocustHeader {
    pub name: String,
    pub value: LocustValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocustValue {
    /// Written unchanged, unless the name is that of a credential.
    Text(String),
    /// An environment variable read when Locust runs, after a prefix such as `Bearer `.
    Variable { before: String, variable: String },
}

/// The locustfile of a plan. Open loads become users that start a call each time their share of the
/// rate is due: Locust knows no others.
pub fn locust(plan: &BenchPlan, target: &LocustTarget) -> Result<String, Error> {
    if target.arguments.len() > MOST_ROWS {
        return Err(Error::usage(format!(
            "'{}' has {} rows of arguments; a locustfile can have {MOST_ROWS}",
            target.name,
            target.arguments.len()
        )));
    }
    let (users, rate) = match plan.model {
        LoadModel::Closed { concurrency } => (concurrency, None),
        LoadModel::Open { arrivals, in_flight, .. } => (in_flight, Some(arrivals.rate())),
    };
    let modern = target.protocol.as_deref() == Some(MODERN);
    let plan = json!({
        "endpoint": target.url,
        "modern": modern,
        "protocol": if modern { MODERN } else { LEGACY },
        "client": { "name": "toolhost-locust", "version": env!("CARGO_PKG_VERSION") },
        "headers": target.headers.iter().map(header).collect::<Value>(),
        "name": target.name,
        "tool": target.tool,
        "arguments": target.arguments,
        "users": users,
        "rate": rate,
        "requests": plan.limits.requests,
        "duration_s": plan.limits.duration.map(|duration| duration.as_secs_f64()),
    });
    Ok(RUNNER.replacen(
        "PLAN_TEXT = \"{}\"",
        &format!("PLAN_TEXT = {}", literal(&pretty(&plan))),
        1,
    ))
}

fn header(header: &LocustHeader) -> Value {
    match &header.value {
        LocustValue::Variable { before, variable } => {
            json!({ "name": header.name, "before": before, "variable": variable })
        }
        LocustValue::Text(_) if is_secret(&header.name) => {
            json!({ "name": header.name, "before": "", "variable": variable(&header.name) })
        }
        LocustValue::Text(text) => json!({ "name": header.name, "text": text }),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "cookie", "token", "secret", "key", "password", "credential", "session"]
        .iter()
        .any(|word| name.contains(word))
}

/// `TOOLHOST_X_API_KEY` for `X-Api-Key`.
fn variable(name: &str) -> String {
    format!("TOOLHOST_{}", variable_name(name))
}

fn literal(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::from("\"\"\"\\\n");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' | ' '..='~' => out.push(c),
            c => {
                let _infallible = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push_str("\"\"\"");
    out
}

#[cfg(test)]
mod tests;
