//! Static strings of this program, read back from another process of it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

/// How many distinct words are kept; the program has far fewer.
const MAX_WORDS: usize = 4_096;

/// A text of the program. Under this name a derived `Deserialize` borrows nothing.
pub type StaticText = &'static str;

static WORDS: Mutex<BTreeSet<StaticText>> = Mutex::new(BTreeSet::new());

/// The one copy of a word; `None` when there are too many already.
fn intern(word: String) -> Option<StaticText> {
    let mut interned_words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(interned) = interned_words.get(word.as_str()) {
        return Some(interned);
    }
    if interned_words.len() >= MAX_WORDS {
        return None;
    }
    let word: StaticText = Box::leak(word.into_boxed_str());
    interned_words.insert(word);
    Some(word)
}

/// Reads one word.
///
/// # Errors
/// When it is not a string, or too many distinct strings were read before.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StaticText, D::Error> {
    let word = String::deserialize(deserializer)?;
    intern(word).ok_or_else(|| D::Error::custom("too many distinct words"))
}

/// Reads a list of words.
///
/// # Errors
/// As [`deserialize`].
pub fn deserialize_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<StaticText>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let interned = texts.into_iter().map(intern).collect::<Option<Vec<_>>>();
    interned.ok_or_else(|| D::Error::custom("too many distinct words"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_kept_once() {
        let read = |json| {
            let mut deserializer = serde_json::Deserializer::from_str(json);
            deserialize(&mut deserializer).unwrap()
        };
        let (first, second) = (read("\"builtin-x\""), read("\"builtin-x\""));
        assert!(std::ptr::eq(first, second));
    }
}
