//! What is searched for among the calls of the past.
//!
//! Owns: the syntax of the filter, and which calls words find. Fields say what is read; words choose
//! among what was read.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::tui::event::history::{HistoryReadFilter, PastCall, SessionFilter};
use crate::util::timestamp::parse_since;

/// What is searched for.
#[derive(Debug, Default, PartialEq)]
pub struct HistorySearch {
    /// What is read.
    pub read_filter: HistoryReadFilter,
    /// What a field says that is not understood, in words.
    pub problem: Option<String>,
    words: Vec<String>,
    without: Vec<String>,
}

impl HistorySearch {
    /// Reads `calc`, `failed:yes`, `tool:calc*`, `since:1h`, `session:this`, `!web`, in any order.
    /// What holds spaces stands in double quotes.
    pub fn of(text: &str) -> Self {
        let mut query = Self::default();
        for word in split(text) {
            match word.split_once(':') {
                Some((_, "")) if is_field(&word) => {}
                Some(("tool", pattern)) => query.read_filter.tool = Some(pattern.to_owned()),
                Some(("failed", answer)) => {
                    query.read_filter.failed = Some(!answer.to_lowercase().starts_with('n'));
                }
                Some(("since", time)) => match parse_since(time) {
                    Ok(since) => query.read_filter.since = Some(since),
                    Err(why) => query.problem = Some(format!("since: {why}")),
                },
                Some(("session", "this")) => {
                    query.read_filter.session = Some(SessionFilter::Current)
                }
                Some(("session", id)) => {
                    query.read_filter.session = Some(SessionFilter::Id(id.to_owned()))
                }
                _ => match word.strip_prefix('!') {
                    Some("") => {}
                    Some(unwanted) => query.without.push(unwanted.to_lowercase()),
                    None => query.words.push(word),
                },
            }
        }
        query
    }

    /// The text that finds the calls of one tool.
    pub fn for_tool(tool: &str) -> String {
        if !tool.is_empty() && !tool.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\')
        {
            return format!("tool:{tool} ");
        }
        let escaped = tool.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"tool:{escaped}\" ")
    }

    /// The positions of the calls that are found, in their order.
    pub fn find(&self, calls: &[PastCall]) -> Vec<usize> {
        let all = 0..calls.len();
        if self.words.is_empty() && self.without.is_empty() {
            return all.collect();
        }
        let mut matcher = Matcher::new(Config::DEFAULT);
        let patterns: Vec<(Pattern, String)> = self
            .words
            .iter()
            .map(|word| {
                let pattern = Pattern::parse(word, CaseMatching::Smart, Normalization::Smart);
                (pattern, word.to_lowercase())
            })
            .collect();
        let mut letters = Vec::new();
        all.filter(|at| {
            let Some(call) = calls.get(*at) else { return false };
            let status = call.error.as_deref().unwrap_or("ok");
            let said = [&call.tool, &call.source, status, &call.arguments, &call.id];
            let said = said.join("\n").to_lowercase();
            let found = patterns.iter().all(|(pattern, word)| {
                let tool = Utf32Str::new(&call.tool, &mut letters);
                pattern.score(tool, &mut matcher).is_some() || said.contains(word)
            });
            found && !self.without.iter().any(|word| said.contains(word))
        })
        .collect()
    }
}

fn is_field(word: &str) -> bool {
    matches!(word.split_once(':'), Some(("tool" | "failed" | "since" | "session", _)))
}

/// The words of a text; in double quotes spaces do not part them, and a backslash stands before a
/// quote or another backslash.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_word, mut is_quoted) = (String::new(), false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => (is_quoted, is_word) = (!is_quoted, true),
            '\\' if is_quoted => {
                let escaped = rest.next_if(|next| matches!(next, '"' | '\\'));
                word.push(escaped.unwrap_or('\\'));
            }
            c if c.is_whitespace() && !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            c => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::util::timestamp::Since;

    #[test]
    fn fields_say_what_is_read_and_words_choose_among_it() {
        let query = HistorySearch::of(r#"ccl failed:yes "tool:a b*" since:1h session:this !web"#);
        let wanted = HistoryReadFilter {
            tool: Some("a b*".to_owned()),
            failed: Some(true),
            since: Some(Since::Ago(Duration::from_hours(1))),
            session: Some(SessionFilter::Current),
        };
        assert_eq!(query.read_filter, wanted);
        assert_eq!(
            (&query.words[..], &query.without[..]),
            (&["ccl".to_owned()][..], &["web".to_owned()][..])
        );
        assert_eq!(query.problem, None);
        assert_eq!(HistorySearch::of("failed:no session:s-1").read_filter.failed, Some(false));
        // While it is being written, a field says nothing yet.
        assert_eq!(
            HistorySearch::of("tool: failed: since:").read_filter,
            HistoryReadFilter::default()
        );
        assert!(HistorySearch::of("since:soon").problem.unwrap().starts_with("since: expected"));
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text in "\\PC{0,40}") {
            let query = HistorySearch::of(&text);
            prop_assert!(query.find(&[]).is_empty());
        }

        #[test]
        fn the_calls_of_a_tool_are_asked_for_by_its_exact_name(tool in "\\PC{1,20}") {
            let query = HistorySearch::of(&HistorySearch::for_tool(&tool));
            prop_assert_eq!(query.read_filter.tool, Some(tool));
            prop_assert!(query.words.is_empty() && query.without.is_empty());
        }
    }
}
