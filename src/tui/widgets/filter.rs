//! The filter language of the views: words, `key:value` terms, and `!word` to exclude.

#[derive(Debug)]
pub struct FilterSyntax<K: 'static> {
    /// The keys by name; several names may stand for one key.
    pub keys: &'static [(&'static str, K)],
    /// Whether double quotes keep words with spaces together. Where JSON is searched they are part
    /// of the text instead.
    pub has_quotes: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct FilterTerms<K> {
    pub values: Vec<(K, String)>,
    /// The words that must occur.
    pub words: Vec<String>,
    /// The words that must not.
    pub excluded: Vec<String>,
}

impl<K: Copy> FilterSyntax<K> {
    /// Reads a filter. A term that is still being typed, such as `key:` or `!`, narrows nothing.
    pub fn parse(&self, text: &str) -> FilterTerms<K> {
        let mut terms = FilterTerms { values: Vec::new(), words: Vec::new(), excluded: Vec::new() };
        for word in split(text, self.has_quotes) {
            let term = word.split_once(':').and_then(|(name, value)| {
                let (_, key) = self.keys.iter().find(|(known, _)| *known == name)?;
                Some((*key, value.to_owned()))
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

    const SYNTAX: FilterSyntax<u8> =
        FilterSyntax { keys: &[("src", 1), ("kind", 1), ("error", 2)], has_quotes: true };

    #[test]
    fn words_values_and_exclusions_come_in_any_order() {
        let terms = SYNTAX.parse(r#"kind:a !no one "src:b c" http://x error: ! "two words""#);
        assert_eq!(terms.values, [(1, "a".to_owned()), (1, "b c".to_owned())]);
        assert_eq!(terms.words, ["one", "http://x", "two words"]);
        assert_eq!(terms.excluded, ["no"]);
        let plain = FilterSyntax { has_quotes: false, ..SYNTAX };
        assert_eq!(plain.parse("\"id\": 1").words, ["\"id\":", "1"]);
    }

    proptest! {
        #[test]
        fn a_quoted_word_reads_as_itself(word in "\\PC{1,20}") {
            prop_assert_eq!(split(&quoted(&word), true), [word]);
        }
    }
}
