//! Glob patterns for names: `*` matches any run of characters, `?` one.

/// Whether each beginning of a pattern, the empty one first, matches the text. Linear in both.
fn matching_beginnings(pattern: &str, text: &str) -> Vec<bool> {
    let pattern: Vec<char> = pattern.chars().collect();
    let stars = pattern.iter().take_while(|c| **c == '*').count();
    let mut matching: Vec<bool> = (0..=pattern.len()).map(|length| length <= stars).collect();
    for c in text.chars() {
        let mut shorter = std::mem::take(&mut matching[0]);
        for (at, expected) in pattern.iter().enumerate() {
            let before = matching[at + 1];
            matching[at + 1] = match expected {
                '*' => matching[at] || before,
                '?' => shorter,
                expected => shorter && *expected == c,
            };
            shorter = before;
        }
    }
    matching
}

/// Whether `name` matches `pattern` as a whole.
pub fn matches(pattern: &str, name: &str) -> bool {
    matching_beginnings(pattern, name).last() == Some(&true)
}

/// Whether some longer text that begins with `prefix` matches `pattern`.
pub fn may_match_after(pattern: &str, prefix: &str) -> bool {
    let mut matching = matching_beginnings(pattern, prefix);
    let is_match = matching.pop() == Some(true);
    matching.contains(&true) || (is_match && pattern.ends_with('*'))
}

/// Whether every text that begins with `prefix` matches `pattern`.
pub fn matches_all_after(pattern: &str, prefix: &str) -> bool {
    // What the last star took may go on as long as it likes.
    pattern.ends_with('*') && matches(pattern, prefix)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_and_question_marks() {
        assert!(matches("github-*", "github-search_issues"));
        assert!(matches("*-delete", "notes-delete"));
        assert!(matches("a?c*", "abcde"));
        assert!(matches("*", ""));
        assert!(!matches("github-*", "gitlab-search"));
        assert!(!matches("", "x"));
        assert!(matches("*a*b*c*", "xxaxxbxxcxx"));
    }

    #[test]
    fn a_prefix_tells_which_patterns_can_still_match() {
        for pattern in ["*", "github-*", "git*", "*-delete", "github-search", "g?thub-a", "*b-*x"] {
            assert!(may_match_after(pattern, "github-"), "{pattern}");
        }
        for pattern in ["", "github", "github-", "gitlab-*", "calculator", "?"] {
            assert!(!may_match_after(pattern, "github-"), "{pattern}");
        }
        for (pattern, all) in [("*", true), ("git*", true), ("github-*", true), ("*-*", true)]
            .into_iter()
            .chain([("*-delete", false), ("github-a*", false), ("github-", false)])
        {
            assert_eq!(matches_all_after(pattern, "github-"), all, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn a_prefix_never_hides_what_matches(
            pattern in "[ab*?]{0,6}", prefix in "[ab]{0,4}", rest in "[ab]{1,4}",
        ) {
            let whole = format!("{prefix}{rest}");
            if matches(&pattern, &whole) {
                prop_assert!(may_match_after(&pattern, &prefix));
            } else {
                prop_assert!(!matches_all_after(&pattern, &prefix));
            }
        }
    }
}
