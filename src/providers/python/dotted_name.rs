//! Names of modules and functions, as Python understands them.

/// Whether a text is names with dots between them, as Python understands names.
pub(super) fn is_dotted(text: &str) -> bool {
    let is_name = |name: &str| {
        name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && name.chars().next().is_some_and(|c| !c.is_numeric())
    };
    text.split('.').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_python_has() {
        for good in ["a", "a.b", "_x1.y", "größe"] {
            assert!(is_dotted(good), "{good}");
        }
        for bad in ["", ".", "a.", "1a", "a-b", "a/b.py", "a b", "f()"] {
            assert!(!is_dotted(bad), "{bad}");
        }
    }
}
