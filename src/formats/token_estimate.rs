//! Estimating what a text costs a model.

/// The longest word, in letters, that is counted as one token.
const WORD: usize = 13;
const DIGITS: usize = 3;
/// The most punctuation in one token, as between the strings of JSON.
const PUNCTUATION: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    Letter,
    Digit,
    Space,
    Punctuation,
    Other,
}

pub fn estimate_tokens(text: &str) -> u64 {
    let continues = |a: char, b: char| {
        let is_hump = a.is_ascii_lowercase() && b.is_ascii_uppercase();
        class(a) == class(b) && !is_hump
    };
    let chars: Vec<char> = text.chars().collect();
    let runs = chars.chunk_by(|a, b| continues(*a, *b));
    runs.map(|run| cost(class(run[0]), run.len()) as u64).sum()
}

fn class(c: char) -> CharacterClass {
    match c {
        _ if c.is_ascii_alphabetic() => CharacterClass::Letter,
        _ if c.is_ascii_digit() => CharacterClass::Digit,
        _ if c.is_ascii_whitespace() => CharacterClass::Space,
        _ if c.is_ascii() => CharacterClass::Punctuation,
        _ => CharacterClass::Other,
    }
}

fn cost(class: CharacterClass, length: usize) -> usize {
    match class {
        CharacterClass::Letter => length.div_ceil(WORD),
        CharacterClass::Digit => length.div_ceil(DIGITS),
        CharacterClass::Punctuation => length.div_ceil(PUNCTUATION),
        // One space is part of the word behind it.
        CharacterClass::Space => usize::from(length > 1),
        CharacterClass::Other => length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_comes_out_near_what_a_tokeniser_counts() {
        let definition = r#"{"type":"function","function":{"name":"create_issue","description":"Creates an issue in a repository; needs write access.","parameters":{"type":"object","properties":{"repositoryName":{"type":"string","description":"Owner and name, such as octo/cat"},"maxResults":{"type":"integer","minimum":1,"maximum":1000}},"required":["repositoryName"],"additionalProperties":false}}}"#;
        let counted: u64 = 83; // by o200k_base
        let estimate = estimate_tokens(definition);
        assert!(estimate.abs_diff(counted) * 10 <= counted, "{estimate}");
    }

    #[test]
    fn every_kind_of_character_costs_something() {
        for (text, tokens) in [
            ("", 0),
            ("word", 1),
            ("two words", 2),
            ("camelCase", 2),
            ("internationalization", 2),
            ("1234567", 3),
            ("\":{\"", 1),
            ("\n\n    ", 1),
            ("日本語", 3),
        ] {
            assert_eq!(estimate_tokens(text), tokens, "{text:?}");
        }
    }
}
