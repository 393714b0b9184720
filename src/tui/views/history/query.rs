//! Parsing the history's filter into a query.

use crate::tui::views::history::tasks::{HistoryReadFilter, PastCall};
use crate::tui::widgets::filter::{FilterTerms, Fuzzy, is_yes, quoted};
use crate::util::timestamp::parse_since;

#[derive(Debug, Default, PartialEq)]
pub struct HistorySearch {
    pub read_filter: HistoryReadFilter,
    /// The error in the value of a key, for the screen.
    pub problem: Option<String>,
    words: Vec<String>,
    without: Vec<String>,
}

impl HistorySearch {
    /// Reads `calc`, `failed:yes`, `tool:calc*`, `since:1h`, `session:this`, `!web`, in any order.
    /// Values with spaces are in double quotes.
    pub fn of(text: &str) -> Self {
        let terms = FilterTerms::of(text, &["tool", "failed", "since", "session"], true);
        let mut query = Self::default();
        for (key, value) in terms.values {
            let filter = &mut query.read_filter;
            match key {
                "tool" => filter.tool = Some(value),
                "failed" => filter.failed = Some(is_yes(&value)),
                "since" => match parse_since(&value) {
                    Ok(since) => filter.since = Some(since),
                    Err(why) => query.problem = Some(format!("since: {why}")),
                },
                _ => filter.session = Some(value),
            }
        }
        query.words = terms.words;
        query.without = terms.excluded.iter().map(|word| word.to_lowercase()).collect();
        query
    }

    pub fn for_tool(tool: &str) -> String {
        format!("{} ", quoted(&format!("tool:{tool}")))
    }

    pub fn find(&self, calls: &[PastCall]) -> Vec<usize> {
        let all = 0..calls.len();
        if self.words.is_empty() && self.without.is_empty() {
            return all.collect();
        }
        let mut words: Vec<(Fuzzy, String)> =
            self.words.iter().map(|word| (Fuzzy::of(word), word.to_lowercase())).collect();
        all.filter(|at| {
            let Some(call) = calls.get(*at) else { return false };
            let status = call.error.as_deref().unwrap_or("ok");
            let fields = [&call.tool, &call.source, status, &call.arguments, &call.id];
            let text = fields.join("\n").to_lowercase();
            let has_words = words
                .iter_mut()
                .all(|(fuzzy, word)| fuzzy.score(&call.tool).is_some() || text.contains(&*word));
            has_words && !self.without.iter().any(|word| text.contains(word))
        })
        .collect()
    }
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
            session: Some("this".to_owned()),
            all_projects: false,
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
