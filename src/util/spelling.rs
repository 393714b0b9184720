//! "Did you mean": suggestions for misspelt words.

/// Longer words are not typos, and comparing takes quadratic time.
const MAX_LENGTH: usize = 256;

/// From how many characters on the beginning of a word counts as the word.
const MIN_PREFIX: usize = 3;

/// The one of `candidates` that `word` probably was meant to be: the one with the fewest typing
/// mistakes, at most one for every three letters and fewer than it has letters, or one that begins
/// with `word`.
pub fn nearest<'k>(word: &str, candidates: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > MAX_LENGTH {
        return None;
    }
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_LENGTH)
        .map(|candidate| (candidate, candidate.to_lowercase()))
        .map(|(candidate, other)| {
            let is_prefix = lower.len() >= MIN_PREFIX && other.starts_with(&lower);
            (strsim::damerau_levenshtein(&lower, &other), is_prefix, candidate)
        })
        .filter(|(distance, is_prefix, candidate)| {
            *is_prefix || *distance < candidate.len() && *distance <= candidate.len().max(3) / 3
        })
        .min_by_key(|(distance, ..)| *distance)
        .map(|(.., candidate)| candidate)
}

/// The hint that names the [`nearest`] word: `did you mean 'name'?`.
pub fn did_you_mean<'k>(
    word: &str,
    candidates: impl IntoIterator<Item = &'k str>,
) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean '{near}'?"))
}

/// How alike two names are, from 0 to 1, for ranking many names.
pub fn similarity(a: &str, b: &str) -> f64 {
    if a.len() > MAX_LENGTH || b.len() > MAX_LENGTH { 0.0 } else { strsim::jaro_winkler(a, b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_has_few_mistakes_or_begins_alike() {
        let names = ["message", "count", "counter"];
        assert_eq!(nearest("mesage", names), Some("message"));
        assert_eq!(nearest("Coutn", names), Some("count"));
        assert_eq!(nearest("mes", names), Some("message"));
        assert_eq!(nearest("counte", names), Some("count"));
        assert_eq!(nearest("me", names), None);
        assert_eq!(nearest("z", ["x", "y"]), None);
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest(&"message".repeat(40), names), None);
        assert_eq!(did_you_mean("mesage", names).unwrap(), "did you mean 'message'?");
    }
}
