//! Searching a text for words: case-sensitive when they contain capitals.

/// Whether a text contains the words; case-sensitive when the words contain capitals.
pub fn has_words(text: &str, words: &str) -> bool {
    if words.chars().any(char::is_uppercase) {
        text.contains(words)
    } else {
        text.to_lowercase().contains(words)
    }
}

/// Splits a text around the words; each piece says whether it is one of the words.
pub fn pieces<'a>(text: &'a str, words: &str) -> Vec<(&'a str, bool)> {
    let folded =
        if words.chars().any(char::is_uppercase) { text.to_owned() } else { text.to_lowercase() };
    let mut pieces = Vec::new();
    let mut from = 0;
    // Where folding moved letters nothing is marked; the text itself is always whole.
    let is_same_length = folded.len() == text.len() && !words.is_empty();
    for (at, _) in folded.match_indices(words).filter(|_| is_same_length) {
        let (Some(before), Some(word)) = (text.get(from..at), text.get(at..at + words.len()))
        else {
            continue;
        };
        pieces.extend([(before, false), (word, true)]);
        from = at + words.len();
    }
    pieces.push((text.get(from..).unwrap_or_default(), false));
    pieces.retain(|(piece, _)| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_letters_find_capitals_and_the_text_stays_whole() {
        assert!(has_words("Straße NORD", "nord") && !has_words("nord", "Nord"));
        for (text, words) in [("aXbxC", "x"), ("İstanbul is", "is"), ("日本日", "日"), ("ab", "")]
        {
            let whole: String = pieces(text, words).iter().map(|(piece, _)| *piece).collect();
            assert_eq!(whole, text);
        }
        assert_eq!(pieces("aXb", "x"), [("a", false), ("X", true), ("b", false)]);
    }
}
