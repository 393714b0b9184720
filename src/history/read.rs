//! Reading the history back.
//!
//! Owns: what a line means, and finding the calls that are asked for. Never does: trust a line. One
//! that is torn, foreign or broken is counted and skipped.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Fault, JsonObject};
use crate::util::append::AppendError;
use crate::util::json;
use crate::util::pattern;
use crate::util::segments::Line;

/// How many calls are named when several begin alike.
const SHOWN: usize = 5;

/// One call and what came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// The call's identity.
    pub id: String,
    /// When it began: seconds since the Unix epoch.
    pub unix: f64,
    /// The full tool name.
    pub tool: String,
    /// The server, for MCP tools.
    pub server: Option<String>,
    /// `internal` or `mcp`.
    pub source: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The call this one was part of.
    pub parent: Option<String>,
    /// The protocol revision, for MCP tools.
    pub protocol: Option<String>,
    /// The fingerprint of the definition that was called.
    pub fingerprint: Option<String>,
    /// What was decided and why.
    pub decision: Option<String>,
    /// From first attempt to answer, in microseconds.
    #[serde(default)]
    pub duration_us: u64,
    /// Attempts made.
    #[serde(default)]
    pub attempts: u32,
    /// The arguments, secrets replaced; `None` when they were too large to keep.
    pub arguments: Option<JsonObject>,
    /// Why it failed, when it did.
    pub fault: Option<KeptFault>,
    /// What the tool gave, when it gave anything.
    pub result: Option<KeptResult>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFault {
    /// The word of its kind.
    pub kind: String,
    /// The failure in words.
    pub message: String,
}

/// What was kept of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptResult {
    /// Whether the tool said it worked.
    pub success: bool,
    /// Bytes of the whole result as JSON.
    #[serde(default)]
    pub bytes: u64,
    /// The kinds of its content blocks, in order.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Whether `output` is only the beginning, as text.
    #[serde(default)]
    pub cut: bool,
    /// The structured value, or the text.
    #[serde(default)]
    pub output: Value,
}

impl KeptResult {
    /// The result as text: text as it is, everything else as indented JSON.
    pub fn text(&self) -> String {
        match &self.output {
            Value::String(text) => text.clone(),
            other => json::pretty(other),
        }
    }
}

impl Entry {
    /// Reads one line; `None` for a torn or foreign one.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let entry: Self = serde_json::from_slice(line).ok()?;
        (entry.unix.is_finite() && !entry.id.is_empty()).then_some(entry)
    }

    /// The duration.
    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.duration_us)
    }
}

/// Which calls are asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Not before this, in seconds since the Unix epoch.
    pub since: Option<f64>,
    /// Only tools whose full name matches this pattern.
    pub tool: Option<String>,
    /// Only calls that failed, or only calls that did not.
    pub failed: Option<bool>,
    /// Only this session.
    pub session: Option<String>,
}

impl Filter {
    fn wants(&self, entry: &Entry) -> bool {
        self.since.is_none_or(|since| entry.unix >= since)
            && self.tool.as_ref().is_none_or(|tool| pattern::matches(tool, &entry.tool))
            && self.failed.is_none_or(|failed| failed == entry.fault.is_some())
            && self.session.as_ref().is_none_or(|session| entry.session.as_ref() == Some(session))
    }
}

/// What was found.
#[derive(Debug)]
pub struct Found<T = Entry> {
    /// The calls, newest first.
    pub entries: Vec<T>,
    /// Lines that could not be read.
    pub damaged: usize,
    /// Whether there may be more than were asked for.
    pub more: bool,
}

/// The newest `limit` calls that `filter` wants, from lines that come newest first.
///
/// # Errors
/// When the history cannot be read.
pub fn newest(
    lines: impl Iterator<Item = Result<Line, AppendError>>,
    filter: &Filter,
    limit: usize,
) -> Result<Found, AppendError> {
    select(lines, filter, limit, |entry| entry)
}

/// The same, with of each call only what `keep` makes of it: a call may be large.
///
/// # Errors
/// When the history cannot be read.
pub fn select<T>(
    lines: impl Iterator<Item = Result<Line, AppendError>>,
    filter: &Filter,
    limit: usize,
    mut keep: impl FnMut(Entry) -> T,
) -> Result<Found<T>, AppendError> {
    /// A clock that was put back by less than this hides no newer calls.
    const SLACK: f64 = 86_400.0;
    let mut found = Found { entries: Vec::new(), damaged: 0, more: false };
    for line in lines {
        if found.entries.len() >= limit {
            found.more = true;
            break;
        }
        let entry = match line? {
            Line::Text(text) => Entry::parse(&text),
            Line::TooLong => None,
        };
        match entry {
            None => found.damaged += 1,
            Some(entry) if filter.since.is_some_and(|since| entry.unix < since - SLACK) => break,
            Some(entry) if filter.wants(&entry) => found.entries.push(keep(entry)),
            Some(_) => {}
        }
    }
    Ok(found)
}

/// Why a record cannot be read.
pub fn unreadable(error: AppendError) -> Fault {
    match error {
        AppendError::Unsafe(why) => {
            Fault::denied(format!("not read: {why}")).hint("look who made it, and remove it")
        }
        AppendError::Failed(why) => Fault::internal(why),
    }
}

/// What looking for one call came to.
#[derive(Debug)]
pub enum Lookup {
    /// The call.
    One(Box<Entry>),
    /// No call has an identity that begins so.
    Nothing,
    /// Several have; some of them.
    Several(Vec<String>),
}

/// The call whose identity is, or begins with, `id`; `last` is the newest.
///
/// # Errors
/// When the history cannot be read.
pub fn find(
    lines: impl Iterator<Item = Result<Line, AppendError>>,
    id: &str,
) -> Result<Lookup, AppendError> {
    // An identity that holds what JSON escapes was not made by us.
    let head = format!("{{\"id\":\"{id}");
    let mut first: Option<Entry> = None;
    let mut more = Vec::new();
    for line in lines {
        let Line::Text(text) = line? else { continue };
        if id != "last" && !text.starts_with(head.as_bytes()) {
            continue;
        }
        let Some(entry) = Entry::parse(&text) else { continue };
        if id == "last" || entry.id == id {
            return Ok(Lookup::One(Box::new(entry)));
        }
        match &first {
            None => first = Some(entry),
            Some(first) if first.id == entry.id => {}
            Some(_) if more.len() < SHOWN => more.push(entry.id),
            Some(_) => break,
        }
    }
    Ok(match first {
        None => Lookup::Nothing,
        Some(entry) if more.is_empty() => Lookup::One(Box::new(entry)),
        Some(entry) => {
            more.insert(0, entry.id);
            Lookup::Several(more)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, tool: &str, fault: bool) -> Line {
        let fault = if fault { r#""fault":{"kind":"tool","message":"no"},"# } else { "" };
        let text = format!(
            r#"{{"id":"{id}","unix":5,"tool":"{tool}",{fault}"session":"s","arguments":{{"n":1.10}},"result":{{"success":true,"output":[1]}}}}"#
        );
        Line::Text(text.into_bytes())
    }

    fn lines() -> impl Iterator<Item = Result<Line, AppendError>> {
        [
            line("aa-3", "x", true),
            Line::TooLong,
            line("ab-2", "y", false),
            Line::Text(b"{\"id\":\"aa".to_vec()),
            line("aa-1", "x", false),
        ]
        .into_iter()
        .map(Ok)
    }

    #[test]
    fn the_newest_come_first_and_damage_is_counted() {
        let ids = |filter: &Filter, limit| -> (Vec<String>, usize) {
            let found = newest(lines(), filter, limit).unwrap();
            (found.entries.into_iter().map(|entry| entry.id).collect(), found.damaged)
        };
        assert_eq!(
            ids(&Filter::default(), 9),
            (vec!["aa-3".into(), "ab-2".into(), "aa-1".into()], 2)
        );
        assert_eq!(ids(&Filter::default(), 1).0, ["aa-3"]);
        assert_eq!(ids(&Filter { failed: Some(true), ..Filter::default() }, 9).0, ["aa-3"]);
        assert_eq!(ids(&Filter { tool: Some("y".into()), ..Filter::default() }, 9).0, ["ab-2"]);
        assert_eq!(ids(&Filter { since: Some(6.0), ..Filter::default() }, 9).0, [""; 0]);
    }

    #[test]
    fn a_unique_beginning_is_enough() {
        let found = |id: &str| match find(lines(), id).unwrap() {
            Lookup::One(entry) => entry.id,
            Lookup::Nothing => "nothing".to_owned(),
            Lookup::Several(ids) => ids.join(" "),
        };
        assert_eq!(found("ab"), "ab-2");
        assert_eq!(found("aa-1"), "aa-1");
        assert_eq!(found("last"), "aa-3");
        assert_eq!(found("aa"), "aa-3 aa-1");
        assert_eq!(found("zz"), "nothing");
        assert_eq!(found("\"},{\\"), "nothing");
    }

    #[test]
    fn numbers_come_back_as_they_were_written() {
        let Line::Text(text) = line("a", "x", false) else { panic!() };
        let entry = Entry::parse(&text).unwrap();
        assert_eq!(entry.arguments.unwrap()["n"].to_string(), "1.10");
    }
}
