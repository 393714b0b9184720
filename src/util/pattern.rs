//! Glob patterns for names: `*` matches any run of characters, `?` one.

/// Whether `name` matches `pattern` as a whole. Linear in practice, never exponential.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            p += 1;
            n += 1;
        } else if let Some((at, from)) = star {
            // The last star takes one character more; earlier stars never need to be tried again.
            p = at + 1;
            n = from + 1;
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether some longer text that begins with `prefix` matches `pattern`.
pub fn may_match_after(pattern: &str, prefix: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    // The places in the pattern that can be reached, all at once. A star may stand for nothing.
    let skip_stars = |mut reached: Vec<bool>| {
        for at in 0..pattern.len() {
            if reached[at] && pattern[at] == '*' {
                reached[at + 1] = true;
            }
        }
        reached
    };
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    reached = skip_stars(reached);
    for c in prefix.chars() {
        let mut next = vec![false; pattern.len() + 1];
        for (at, expected) in pattern.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match expected {
                '*' => next[at] = true,
                '?' => next[at + 1] = true,
                _ => next[at + 1] |= *expected == c,
            }
        }
        reached = skip_stars(next);
    }
    reached.iter().take(pattern.len()).any(|is_reached| *is_reached)
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
