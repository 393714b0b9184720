//! Reading the history.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{CallFacts, CallFilter, CallPlace, CallerRecord, JsonObject};
use crate::util::append::AppendError;
use crate::util::json;
use crate::util::segments::RecordLine;

/// How many calls are named when several have the same prefix.
const MAX_CANDIDATES: usize = 5;

/// One call and its outcome.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The identity by which a call is looked up and rerun.
    pub id: String,
    /// When it began: seconds since the Unix epoch.
    pub unix: f64,
    pub tool: String,
    pub server: Option<String>,
    /// The project it was made for, and the program behind the name.
    #[serde(flatten)]
    pub place: CallPlace,
    /// `internal` for tools of a file, `mcp` for those of a server.
    pub source: Option<String>,
    pub session: Option<String>,
    /// The arguments that name its server on a command line; only for one not in any config file.
    pub command_end: Option<String>,
    /// Whose call it was; lines of earlier versions do not say.
    pub caller: Option<CallerRecord>,
    /// The call this one was part of.
    pub parent: Option<String>,
    pub protocol: Option<String>,
    pub fingerprint: Option<String>,
    pub decision: Option<String>,
    /// From first attempt to answer without waiting for a person, in microseconds.
    #[serde(default)]
    pub duration_us: u64,
    /// How long a person was waited for, in microseconds.
    #[serde(default)]
    pub waited_us: u64,
    /// Attempts made.
    #[serde(default)]
    pub attempts: u32,
    /// The arguments, secrets replaced; `None` when they were too large to keep.
    pub arguments: Option<JsonObject>,
    /// Why the call failed; `None` when it did not.
    #[serde(rename = "fault")]
    pub error: Option<StoredError>,
    /// What the tool gave, when it gave anything.
    pub result: Option<StoredResult>,
}

/// A failure as the history keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoredError {
    /// The word of its kind.
    pub kind: String,
    /// The message of the failure, secrets masked.
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredResult<T = Value> {
    /// Whether the tool said it worked.
    pub success: bool,
    /// Bytes of the whole result as JSON.
    #[serde(default)]
    pub bytes: u64,
    /// The kinds of its content blocks, in order.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Whether `output` is only the beginning, as text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The structured value, or the text.
    #[serde(default)]
    pub output: T,
}

impl StoredResult {
    /// The result as text: text unchanged, everything else as indented JSON.
    pub fn text(&self) -> String {
        match &self.output {
            Value::String(text) => text.clone(),
            other => json::pretty(other),
        }
    }
}

impl HistoryEntry {
    /// Reads one line; `None` for a torn or foreign one.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let entry: Self = serde_json::from_slice(line).ok()?;
        (entry.unix.is_finite() && !entry.id.is_empty()).then_some(entry)
    }

    /// What a filter asks about it.
    pub fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            at: self.unix,
            tool: &self.tool,
            failed: self.error.is_some(),
            project: self.place.project.as_deref(),
            session: self.session.as_deref(),
            decision: self.decision.as_deref().unwrap_or_default(),
        }
    }

    /// From the first attempt to the answer.
    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.duration_us)
    }

    /// How long a person was waited for; `None` when no person was.
    pub fn waited(&self) -> Option<Duration> {
        (self.waited_us > 0).then(|| Duration::from_micros(self.waited_us))
    }
}

#[derive(Debug)]
pub struct HistoryPage<T = HistoryEntry> {
    /// The calls, the newest first.
    pub entries: Vec<T>,
    /// Lines that could not be read.
    pub damaged: usize,
    /// Whether there may be more than were asked for.
    pub has_more: bool,
}

/// The newest `limit` calls that `filter` wants, from lines that come newest first.
pub fn newest(
    lines: impl Iterator<Item = Result<RecordLine, AppendError>>,
    filter: &CallFilter,
    limit: usize,
) -> Result<HistoryPage, AppendError> {
    select(lines, filter, limit, |entry| entry)
}

/// The same, with of each call only what `keep` makes of it: a call may be large.
pub fn select<T>(
    lines: impl Iterator<Item = Result<RecordLine, AppendError>>,
    filter: &CallFilter,
    limit: usize,
    mut keep: impl FnMut(HistoryEntry) -> T,
) -> Result<HistoryPage<T>, AppendError> {
    let mut page = HistoryPage { entries: Vec::new(), damaged: 0, has_more: false };
    for line in lines {
        if page.entries.len() >= limit {
            page.has_more = true;
            break;
        }
        let entry = match line? {
            RecordLine::Text(text) => HistoryEntry::parse(&text),
            RecordLine::TooLong => None,
        };
        match entry {
            None => page.damaged += 1,
            Some(entry) if filter.ends_at(entry.unix) => break,
            Some(entry) if filter.matches(&entry.facts()) => page.entries.push(keep(entry)),
            Some(_) => {}
        }
    }
    Ok(page)
}

/// What looking for one call came to.
#[derive(Debug)]
pub enum HistoryLookup {
    /// Exactly one call has such an identity.
    One(Box<HistoryEntry>),
    /// No call has an identity with this prefix.
    NotFound,
    /// Several have; some of them.
    Ambiguous(Vec<String>),
}

/// The call whose identity is, or begins with, `id`; `last` is the newest of a project, or of all.
pub fn find(
    lines: impl Iterator<Item = Result<RecordLine, AppendError>>,
    id: &str,
    project: Option<&str>,
) -> Result<HistoryLookup, AppendError> {
    // An identity that holds what JSON escapes was not made by us.
    let head = format!("{{\"id\":\"{id}");
    let mut first: Option<HistoryEntry> = None;
    let mut more = Vec::new();
    for line in lines {
        let RecordLine::Text(text) = line? else { continue };
        if id != "last" && !text.starts_with(head.as_bytes()) {
            continue;
        }
        let Some(entry) = HistoryEntry::parse(&text) else { continue };
        let is_of_project = project.is_none() || entry.place.project.as_deref() == project;
        if if id == "last" { is_of_project } else { entry.id == id } {
            return Ok(HistoryLookup::One(Box::new(entry)));
        }
        match &first {
            _ if id == "last" => {}
            None => first = Some(entry),
            Some(first) if first.id == entry.id => {}
            Some(_) if more.len() < MAX_CANDIDATES => more.push(entry.id),
            Some(_) => break,
        }
    }
    Ok(match first {
        None => HistoryLookup::NotFound,
        Some(entry) if more.is_empty() => HistoryLookup::One(Box::new(entry)),
        Some(entry) => {
            more.insert(0, entry.id);
            HistoryLookup::Ambiguous(more)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, tool: &str, error: bool) -> RecordLine {
        let error = if error { r#""fault":{"kind":"tool","message":"no"},"# } else { "" };
        let text = format!(
            r#"{{"id":"{id}","unix":5,"tool":"{tool}",{error}"session":"s","arguments":{{"n":1.10}},"result":{{"success":true,"output":[1]}}}}"#
        );
        RecordLine::Text(text.into_bytes())
    }

    fn lines() -> impl Iterator<Item = Result<RecordLine, AppendError>> {
        [
            line("aa-3", "x", true),
            RecordLine::TooLong,
            line("ab-2", "y", false),
            RecordLine::Text(b"{\"id\":\"aa".to_vec()),
            line("aa-1", "x", false),
        ]
        .into_iter()
        .map(Ok)
    }

    #[test]
    fn the_newest_come_first_and_damage_is_counted() {
        let ids = |filter: &CallFilter, limit| -> (Vec<String>, usize) {
            let page = newest(lines(), filter, limit).unwrap();
            (page.entries.into_iter().map(|entry| entry.id).collect(), page.damaged)
        };
        assert_eq!(
            ids(&CallFilter::default(), 9),
            (vec!["aa-3".into(), "ab-2".into(), "aa-1".into()], 2)
        );
        assert_eq!(ids(&CallFilter::default(), 1).0, ["aa-3"]);
        assert_eq!(ids(&CallFilter { failed: Some(true), ..CallFilter::default() }, 9).0, ["aa-3"]);
        assert_eq!(
            ids(&CallFilter { tools: Some(vec!["y".into()]), ..CallFilter::default() }, 9).0,
            ["ab-2"]
        );
        assert_eq!(
            ids(&CallFilter { since: Some(Duration::from_secs(6)), ..CallFilter::default() }, 9).0,
            [""; 0]
        );
    }

    #[test]
    fn a_unique_beginning_is_enough() {
        let id_of = |id: &str| match find(lines(), id, None).unwrap() {
            HistoryLookup::One(entry) => entry.id,
            HistoryLookup::NotFound => "nothing".to_owned(),
            HistoryLookup::Ambiguous(ids) => ids.join(" "),
        };
        assert_eq!(id_of("ab"), "ab-2");
        assert_eq!(id_of("aa-1"), "aa-1");
        assert_eq!(id_of("last"), "aa-3");
        assert_eq!(id_of("aa"), "aa-3 aa-1");
        assert_eq!(id_of("zz"), "nothing");
        assert_eq!(id_of("\"},{\\"), "nothing");
    }

    #[test]
    fn numbers_come_back_as_they_were_written() {
        let RecordLine::Text(text) = line("a", "x", false) else { panic!() };
        let entry = HistoryEntry::parse(&text).unwrap();
        assert_eq!(entry.arguments.unwrap()["n"].to_string(), "1.10");
    }
}
