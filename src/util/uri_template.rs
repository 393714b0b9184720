//! Templates of addresses (RFC 6570), as far as a client needs them: which variables they have and
//! whether an address can have been made of one.
//!
//! Owns: reading. Never does: fill a template in. Matching is generous where the specification
//! leaves servers room (what `{name}` may hold), because the server decides in the end.

use regex::Regex;

/// The longest template that is looked at, in bytes.
const LONGEST: usize = 8 * 1024;

/// The names of the variables, in order, each once.
pub fn variables(template: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for expression in parts(template).filter_map(|(_, expression)| expression) {
        let names = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        for name in names.split(',') {
            // `{name*}` is a list, `{name:3}` its beginning.
            let name = name.split([':', '*']).next().unwrap_or_default().trim();
            if !name.is_empty() && !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

/// Whether `uri` can have been made of `template`.
pub fn matches(template: &str, uri: &str) -> bool {
    if template.len() > LONGEST || uri.len() > LONGEST {
        return false;
    }
    let mut pattern = String::from(r"\A(?s:");
    for (literal, expression) in parts(template) {
        pattern.push_str(&regex::escape(literal));
        pattern.push_str(match expression.map(|inner| (inner.chars().next(), inner)) {
            None => "",
            Some((Some('+'), _)) => ".+",
            Some((Some('#'), _)) => "(?:#.*)?",
            Some((Some('.'), _)) => r"(?:\..*)?",
            Some((Some('/'), _)) => "(?:/.*)?",
            Some((Some(';'), _)) => "(?:;.*)?",
            Some((Some('?'), _)) => r"(?:\?.*)?",
            Some((Some('&'), _)) => "(?:&.*)?",
            Some((_, inner)) if inner.contains('*') => ".+",
            Some(_) => "[^/?#]+",
        });
    }
    pattern.push_str(r")\z");
    // A template of thousands of expressions may be more than a pattern can be: it matches nothing.
    Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(uri))
}

/// The template in pieces: a literal and the expression after it, without its braces. A brace that
/// is never closed is literal.
fn parts(template: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(template);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some((literal, after)) = text.split_once('{') else { return Some((text, None)) };
        let Some((expression, after)) = after.split_once('}') else { return Some((text, None)) };
        rest = Some(after);
        Some((literal, Some(expression)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn variables_are_found_in_order_and_once() {
        assert_eq!(
            variables("repo://{owner}/{repo}{/path*}{?ref,owner}"),
            ["owner", "repo", "path", "ref"]
        );
        assert_eq!(variables("a:{x:3}{+y}"), ["x", "y"]);
        for none in ["a:b", "a:{", "a:{}", "a:}{"] {
            assert!(variables(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn addresses_fit_or_not() {
        for (template, uri) in [
            ("demo://notes/{name}", "demo://notes/draft"),
            ("a:{x}", "a:%20b"),
            ("file:///{+path}", "file:///a/b/c.txt"),
            ("file:///{path*}", "file:///a/b"),
            ("db://{table}{?limit,offset}", "db://users"),
            ("db://{table}{?limit,offset}", "db://users?limit=3"),
            ("r://{a}{/b}", "r://x/y"),
            ("plain:x", "plain:x"),
        ] {
            assert!(matches(template, uri), "{template} {uri}");
        }
        for (template, uri) in [
            ("demo://notes/{name}", "demo://notes/"),
            ("demo://notes/{name}", "demo://notes/a/b"),
            ("demo://notes/{name}", "xdemo://notes/a"),
            ("a.b:{x}", "aXb:1"),
            ("plain:x", "plain:xy"),
        ] {
            assert!(!matches(template, uri), "{template} {uri}");
        }
    }

    proptest! {
        #[test]
        fn any_texts_are_harmless(template in any::<String>(), uri in any::<String>()) {
            let _either = (variables(&template).len(), matches(&template, &uri));
        }

        #[test]
        fn a_text_without_braces_fits_itself_only(text in "[^{]{0,40}", other in "[^{]{0,40}") {
            prop_assert!(matches(&text, &text));
            prop_assert_eq!(matches(&text, &other), text == other);
        }
    }
}
