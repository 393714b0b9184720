//! Comparing two recorded calls.

use std::time::Duration;

use super::HistoryEntry;
use super::read::StoredResult;
use crate::util::diff::{self, Hunk};
use crate::util::json;

const AROUND: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallText {
    pub name: String,
    pub text: String,
    pub is_truncated: bool,
}

impl CallText {
    pub fn of(entry: &HistoryEntry) -> Self {
        let error = entry.error.as_ref().map(|f| (f.kind.as_str(), f.message.as_str()));
        Self::new(&entry.id, entry.result.as_ref(), error)
    }

    /// The outcome of a call: a result, or the kind and message of a failure.
    pub fn new(name: &str, result: Option<&StoredResult>, error: Option<(&str, &str)>) -> Self {
        let text = match (result, error) {
            (Some(result), _) => result.text(),
            (None, Some((kind, message))) => format!("no result: {kind}: {message}"),
            (None, None) => String::new(),
        };
        let cut = result.is_some_and(|result| result.cut);
        Self { name: name.to_owned(), text: with_final_newline(text), is_truncated: cut }
    }

    pub fn hunks(&self, later: &Self) -> Vec<Hunk> {
        diff::hunks(&self.text, &later.text, AROUND)
    }
}

/// The differences between two calls, part by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallComparison {
    pub ids: [String; 2],
    pub tools: [String; 2],
    /// How long they took, in the same order.
    pub durations: [Duration; 2],
    pub arguments: Vec<Hunk>,
    pub results: Vec<Hunk>,
    /// Whether only the beginning of a result was kept.
    pub is_truncated: bool,
    /// Whether both were calls of the same definition; `None` when that was not kept.
    pub same_definition: Option<bool>,
}

impl CallComparison {
    pub fn of(one: &HistoryEntry, other: &HistoryEntry) -> Self {
        let (then, now) = if one.unix <= other.unix { (one, other) } else { (other, one) };
        let (before, behind) = (CallText::of(then), CallText::of(now));
        let fingerprints = then.fingerprint.as_ref().zip(now.fingerprint.as_ref());
        Self {
            ids: [then.id.clone(), now.id.clone()],
            tools: [then.tool.clone(), now.tool.clone()],
            durations: [then.duration(), now.duration()],
            arguments: diff::hunks(&arguments(then), &arguments(now), AROUND),
            results: before.hunks(&behind),
            is_truncated: before.is_truncated || behind.is_truncated,
            same_definition: fingerprints.map(|(then, now)| then == now),
        }
    }
}

fn arguments(entry: &HistoryEntry) -> String {
    match &entry.arguments {
        Some(arguments) => with_final_newline(json::pretty(arguments)),
        None => "too large to store\n".to_owned(),
    }
}

fn with_final_newline(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::diff::DiffMark;

    #[test]
    fn a_failure_without_a_result_is_compared_by_its_words() {
        let side = CallText::new("a", None, Some(("timeout", "too late")));
        assert_eq!(side.text, "no result: timeout: too late\n");
    }

    #[test]
    fn the_earlier_call_is_the_old_one_whichever_is_named_first() {
        let entry = |id: &str, unix: u32, n: u32, print: &str| {
            let line = format!(
                r#"{{"id":"{id}","unix":{unix},"tool":"t","fingerprint":"{print}","duration_us":{n},"arguments":{{"n":{n}}},"result":{{"success":true,"output":"same"}}}}"#
            );
            HistoryEntry::parse(line.as_bytes()).unwrap()
        };
        let (old, new) = (entry("a", 1, 10, "x"), entry("b", 2, 20, "y"));
        let compared = CallComparison::of(&new, &old);
        assert_eq!(compared, CallComparison::of(&old, &new));
        assert_eq!(compared.ids, ["a", "b"]);
        assert_eq!(compared.durations.map(|d| d.as_micros()), [10, 20]);
        assert_eq!(compared.same_definition, Some(false));
        assert_eq!(compared.results, []);
        let lines = compared.arguments.iter().flat_map(|hunk| &hunk.lines);
        let changed: Vec<_> = lines
            .filter(|line| line.mark != DiffMark::Same)
            .map(|line| format!("{}{}", line.mark.sign(), line.text.trim()))
            .collect();
        assert_eq!(changed, [r#"-"n": 10"#, r#"+"n": 20"#]);
    }
}
