//! What narrows the lists of the views: the line that is typed, its language (words, `key:value` terms,
//! and `!word` to exclude), and the search by letters in their order.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::tui::widgets::input::TextInput;
use crate::tui::widgets::list::ListCursor;

/// The filter of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListFilter {
    pub line: TextInput,
    /// Whether it is being typed: then it has the keys.
    pub is_typed: bool,
}

impl ListFilter {
    pub fn text(&self) -> &str {
        self.line.text()
    }

    /// Lets it be typed; what was typed before is replaced by the first letter.
    pub fn start(&mut self) {
        self.is_typed = true;
        self.line.select();
    }

    pub fn set(&mut self, text: impl Into<String>) {
        *self = Self { line: TextInput::of(text), is_typed: false };
    }

    pub fn is_shown(&self) -> bool {
        self.is_typed || !self.text().is_empty()
    }

    /// The numbers of the names that have each word and nothing that is excluded, in their order.
    pub fn find<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<usize> {
        let mut words = WordMatcher::read(self.text());
        let found = names.enumerate().filter(|(_, name)| words.admits(name, name));
        found.map(|(at, _)| at).collect()
    }
}

/// What a filter shows of a list, and which of that is chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FilteredList {
    pub filter: ListFilter,
    pub cursor: ListCursor,
    /// The numbers of the items that are shown.
    found: Vec<usize>,
}

impl FilteredList {
    pub fn found(&self) -> &[usize] {
        &self.found
    }

    /// The number of the chosen item; `None` when nothing is shown.
    pub fn chosen(&self) -> Option<usize> {
        self.found.get(self.cursor.chosen()).copied()
    }

    /// The text has changed: chooses the first match; without a text what was chosen stays so.
    pub fn narrow(&mut self, found: Vec<usize>) {
        let chosen = self.chosen().filter(|_| self.filter.text().is_empty());
        self.cursor = ListCursor::default();
        self.show(found, chosen);
    }

    /// The items have changed: chooses the one with this number, else what stands in the same line.
    pub fn show(&mut self, found: Vec<usize>, chosen: Option<usize>) {
        let at = found.iter().position(|at| Some(*at) == chosen);
        self.found = found;
        self.cursor.choose(at.unwrap_or(self.cursor.chosen()), self.found.len());
    }

    /// Moves the cursor by this many lines; negative moves up.
    pub fn step(&mut self, by: isize) {
        self.cursor.step(by, self.found.len());
    }
}

/// Something is chosen of many by a few letters of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Picker<T> {
    pub list: FilteredList,
    items: Vec<T>,
}

impl<T> Picker<T> {
    pub fn of(items: Vec<T>) -> Self {
        let found = (0..items.len()).collect();
        Self { list: FilteredList { found, ..FilteredList::default() }, items }
    }

    /// Searches again after the text has changed.
    pub fn search(&mut self, find: impl FnOnce(&str, &[T]) -> Vec<usize>) {
        self.list.narrow(find(self.list.filter.text(), &self.items));
    }

    /// What is found, in the order of the lines.
    pub fn found(&self) -> impl ExactSizeIterator<Item = &T> + '_ {
        self.list.found.iter().map(|at| &self.items[*at])
    }

    /// The chosen one; `None` when nothing matches.
    pub fn chosen(&self) -> Option<&T> {
        self.items.get(self.list.chosen()?)
    }
}

/// Finds texts that have some letters in their order; a capital is only itself.
pub struct Fuzzy {
    pattern: Pattern,
    matcher: Matcher,
    letters: Vec<char>,
}

impl Fuzzy {
    pub fn of(query: &str) -> Self {
        let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
        Self { pattern, matcher: Matcher::new(Config::DEFAULT), letters: Vec::new() }
    }

    /// How well a text fits; `None` when it does not.
    pub fn score(&mut self, text: &str) -> Option<u32> {
        self.pattern.score(Utf32Str::new(text, &mut self.letters), &mut self.matcher)
    }

    /// The numbers of the items that fit, the best first and equally good ones in their order. The
    /// name of an item counts more than what else is said of it, a name that has the letters in one
    /// piece more than one that has them here and there, and none more than the one written whole.
    pub fn rank<'t>(
        query: &str,
        items: impl Iterator<Item = (usize, &'t str, Option<String>)>,
    ) -> Vec<usize> {
        let (mut fuzzy, letters) = (Self::of(query), query.trim().to_lowercase());
        let score = |(at, name, more): (usize, &str, Option<String>)| {
            let Some(score) = fuzzy.score(name) else {
                return Some(((false, false, fuzzy.score(&more?)?), at));
            };
            let name = name.to_lowercase();
            Some(((name == letters, name.contains(&letters), score * 2), at))
        };
        let mut scored: Vec<_> = items.filter_map(score).collect();
        scored.sort_unstable_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
        scored.into_iter().map(|(_, at)| at).collect()
    }
}

/// The words of a filter, to be looked for in a name and in what else is said of it.
pub struct WordMatcher {
    words: Vec<(Fuzzy, String)>,
    excluded: Vec<String>,
}

impl WordMatcher {
    /// The words of a filter without keys.
    pub fn read(text: &str) -> Self {
        let terms = FilterTerms::of(text, &[], true);
        Self::of(&terms.words, &terms.excluded)
    }

    pub fn of(words: &[String], excluded: &[String]) -> Self {
        let words = words.iter().map(|word| (Fuzzy::of(word), word.to_lowercase())).collect();
        Self { words, excluded: excluded.iter().map(|word| word.to_lowercase()).collect() }
    }

    /// Whether the letters of each word are in the name, or the word in the text, and no excluded word
    /// is in the text.
    pub fn admits(&mut self, name: &str, text: &str) -> bool {
        let text = text.to_lowercase();
        let mut words = self.words.iter_mut();
        words.all(|(fuzzy, word)| fuzzy.score(name).is_some() || text.contains(&*word))
            && !self.excluded.iter().any(|word| text.contains(word))
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct FilterTerms {
    /// The terms with one of the keys.
    pub values: Vec<(&'static str, String)>,
    pub words: Vec<String>,
    /// The words that must not.
    pub excluded: Vec<String>,
}

impl FilterTerms {
    /// Reads a filter. A term that is still being typed, such as `key:` or `!`, narrows nothing. With
    /// `has_quotes` double quotes keep words with spaces together; where JSON is searched they are part
    /// of the text instead.
    pub fn of(text: &str, keys: &[&'static str], has_quotes: bool) -> Self {
        let mut terms = Self::default();
        for word in split(text, has_quotes) {
            let term = word.split_once(':').and_then(|(name, value)| {
                Some((*keys.iter().find(|key| **key == name)?, value.to_owned()))
            });
            match (term, word.strip_prefix('!')) {
                (Some((_, value)), _) if value.is_empty() => {}
                (Some(term), _) => terms.values.push(term),
                (None, Some("")) => {}
                (None, Some(excluded)) => terms.excluded.push(excluded.to_owned()),
                (None, None) => terms.words.push(word),
            }
        }
        terms
    }
}

/// Reads the value of a yes/no key: anything is yes unless it starts with `n`.
pub fn is_yes(value: &str) -> bool {
    !value.starts_with(['n', 'N'])
}

pub fn quoted(word: &str) -> String {
    if !word.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\') {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The words of a text. In double quotes spaces do not separate them, and a backslash stands before
/// a quote or another backslash.
fn split(text: &str, has_quotes: bool) -> Vec<String> {
    if !has_quotes {
        return text.split_whitespace().map(str::to_owned).collect();
    }
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
    use proptest::prelude::*;

    use super::*;

    const KEYS: &[&str] = &["src", "kind", "error"];

    #[test]
    fn words_values_and_exclusions_come_in_any_order() {
        let text = r#"kind:a !no one "src:b c" http://x error: ! "two words""#;
        let terms = FilterTerms::of(text, KEYS, true);
        assert_eq!(terms.values, [("kind", "a".to_owned()), ("src", "b c".to_owned())]);
        assert_eq!(terms.words, ["one", "http://x", "two words"]);
        assert_eq!(terms.excluded, ["no"]);
        assert_eq!(FilterTerms::of("\"id\": 1", KEYS, false).words, ["\"id\":", "1"]);
    }

    #[test]
    fn letters_in_one_piece_come_before_letters_here_and_there() {
        let names = ["demo-log_lines", "demo-delete_note", "del", "echo", "demo-slow"];
        let items = names.iter().enumerate().map(|(at, name)| (at, *name, None));
        assert_eq!(Fuzzy::rank("del", items)[..3], [2, 1, 0]);
    }

    proptest! {
        #[test]
        fn a_quoted_word_reads_as_itself(word in "\\PC{1,20}") {
            prop_assert_eq!(split(&quoted(&word), true), [word]);
        }
    }
}
