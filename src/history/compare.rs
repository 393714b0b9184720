//! Two calls side by side.
//!
//! Owns: what of two calls is compared, and how. Never does: find them, or say it in colours.

use std::time::Duration;

use super::Entry;
use super::read::KeptResult;
use crate::util::difference::{self, Hunk};
use crate::util::json;

/// Lines around a difference that are shown.
const AROUND: usize = 3;

/// What one call gave, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// The call's identity.
    pub name: String,
    /// Its result, or why there is none.
    pub text: String,
    /// Whether only the beginning is known.
    pub cut: bool,
}

impl Side {
    /// What a call of the past gave.
    pub fn of(entry: &Entry) -> Self {
        let fault = entry.fault.as_ref().map(|f| (f.kind.as_str(), f.message.as_str()));
        Self::new(&entry.id, entry.result.as_ref(), fault)
    }

    /// What a call gave: a result, or the kind of a failure and the failure in words.
    pub fn new(name: &str, result: Option<&KeptResult>, fault: Option<(&str, &str)>) -> Self {
        let text = match (result, fault) {
            (Some(result), _) => result.text(),
            (None, Some((kind, message))) => format!("no result: {kind}: {message}"),
            (None, None) => String::new(),
        };
        let cut = result.is_some_and(|result| result.cut);
        Self { name: name.to_owned(), text: ended(text), cut }
    }

    /// The lines in which this differs from what came later.
    pub fn hunks(&self, later: &Self) -> Vec<Hunk> {
        difference::hunks(&self.text, &later.text, AROUND)
    }
}

/// How two calls differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The identities, the earlier one first.
    pub ids: [String; 2],
    /// The tools, in the same order.
    pub tools: [String; 2],
    /// How long they took, in the same order.
    pub durations: [Duration; 2],
    /// Lines of the arguments that differ.
    pub arguments: Vec<Hunk>,
    /// Lines of the results that differ.
    pub results: Vec<Hunk>,
    /// Whether only the beginning of a result was kept.
    pub cut: bool,
    /// Whether both were calls of the same definition; `None` when that was not kept.
    pub same_definition: Option<bool>,
}

impl Comparison {
    /// Compares two calls, whichever was made first.
    pub fn of(one: &Entry, other: &Entry) -> Self {
        let (then, now) = if one.unix <= other.unix { (one, other) } else { (other, one) };
        let (before, behind) = (Side::of(then), Side::of(now));
        let fingerprints = then.fingerprint.as_ref().zip(now.fingerprint.as_ref());
        Self {
            ids: [then.id.clone(), now.id.clone()],
            tools: [then.tool.clone(), now.tool.clone()],
            durations: [then.duration(), now.duration()],
            arguments: difference::hunks(&arguments(then), &arguments(now), AROUND),
            results: before.hunks(&behind),
            cut: before.cut || behind.cut,
            same_definition: fingerprints.map(|(then, now)| then == now),
        }
    }
}

fn arguments(entry: &Entry) -> String {
    match &entry.arguments {
        Some(arguments) => ended(json::pretty(arguments)),
        None => "too large to be kept\n".to_owned(),
    }
}

/// A text whose last line is a line.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::difference::Mark;

    #[test]
    fn a_failure_without_a_result_is_compared_by_its_words() {
        let side = Side::new("a", None, Some(("timeout", "too late")));
        assert_eq!(side.text, "no result: timeout: too late\n");
    }

    #[test]
    fn the_earlier_call_is_the_old_one_whichever_is_named_first() {
        let entry = |id: &str, unix: u32, n: u32, print: &str| {
            let line = format!(
                r#"{{"id":"{id}","unix":{unix},"tool":"t","fingerprint":"{print}","duration_us":{n},"arguments":{{"n":{n}}},"result":{{"success":true,"output":"same"}}}}"#
            );
            Entry::parse(line.as_bytes()).unwrap()
        };
        let (old, new) = (entry("a", 1, 10, "x"), entry("b", 2, 20, "y"));
        let compared = Comparison::of(&new, &old);
        assert_eq!(compared, Comparison::of(&old, &new));
        assert_eq!(compared.ids, ["a", "b"]);
        assert_eq!(compared.durations.map(|d| d.as_micros()), [10, 20]);
        assert_eq!(compared.same_definition, Some(false));
        assert_eq!(compared.results, []);
        let lines = compared.arguments.iter().flat_map(|hunk| &hunk.lines);
        let changed: Vec<_> = lines
            .filter(|line| line.mark != Mark::Same)
            .map(|line| format!("{}{}", line.mark.sign(), line.text.trim()))
            .collect();
        assert_eq!(changed, [r#"-"n": 10"#, r#"+"n": 20"#]);
    }
}
