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

#[cfg(test)]
mod tests {
    use super::matches;

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
}
