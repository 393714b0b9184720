//! URI templates (RFC 6570), as far as a client needs them: their variables, and whether a URI can
//! have been expanded from one.

use std::num::NonZeroUsize;

use regex::Regex;

use super::percent;

/// Maximum length of a template, in bytes.
const LONGEST: usize = 8 * 1024;

/// What may stand in an address with a meaning of its own.
const RESERVED: &str = ":/?#[]@!$&'()*+,;=";
const OPERATORS: [char; 7] = ['+', '#', '.', '/', ';', '?', '&'];

/// The names of all variables, in order, each once.
pub fn variables(template: &str) -> Vec<&str> {
    variables_of(template, |_| true)
}

/// The names of the variables without which an address has a hole, in order, each once.
pub fn required_variables(template: &str) -> Vec<&str> {
    variables_of(template, |inner| !inner.starts_with(['#', '.', '/', ';', '?', '&']))
}

fn variables_of(template: &str, is_meant: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut variables = Vec::new();
    let expressions = parts(template).filter_map(|(_, inner)| inner);
    for name in expressions.filter(|inner| is_meant(inner)).flat_map(names) {
        if !variables.contains(&name) {
            variables.push(name);
        }
    }
    variables
}

fn names(expression: &str) -> impl Iterator<Item = &str> {
    let names = expression.trim_start_matches(OPERATORS).split(',');
    // `{name*}` is a list, `{name:3}` its beginning.
    let names = names.map(|name| name.split([':', '*']).next().unwrap_or_default().trim());
    names.filter(|name| !name.is_empty())
}

/// The address that a template makes of texts; a variable without one is left out.
pub fn expand<'v>(template: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut uri = String::new();
    for (literal, expression) in parts(template) {
        uri.push_str(literal);
        let Some(expression) = expression else { continue };
        let how = Expansion::of(expression);
        let mut first = true;
        for variable in expression.trim_start_matches(OPERATORS).split(',') {
            let (name, length) = match variable.split_once(':') {
                Some((name, length)) => (name, length.trim().parse().unwrap_or(NonZeroUsize::MAX)),
                None => (variable.trim_end_matches('*'), NonZeroUsize::MAX),
            };
            let name = name.trim();
            let Some(text) = value(name) else { continue };
            uri.push_str(if first { how.before } else { how.between });
            first = false;
            if how.is_named {
                uri.push_str(name);
                uri.push_str(if text.is_empty() { how.empty } else { "=" });
            }
            let kept = if how.keeps_reserved { RESERVED } else { "" };
            let end = text.char_indices().nth(length.get()).map_or(text.len(), |(at, _)| at);
            let text = text.get(..end).unwrap_or_default();
            uri.push_str(&percent::encode(text, &format!("-._~{kept}")));
        }
    }
    uri
}

/// What an operator makes of the values behind it (RFC 6570, appendix A).
struct Expansion {
    before: &'static str,
    between: &'static str,
    is_named: bool,
    /// What stands behind the name of an empty value.
    empty: &'static str,
    keeps_reserved: bool,
}

impl Expansion {
    fn of(expression: &str) -> Self {
        let (before, between, is_named, empty, keeps_reserved) = match expression.chars().next() {
            Some('+') => ("", ",", false, "", true),
            Some('#') => ("#", ",", false, "", true),
            Some('.') => (".", ".", false, "", false),
            Some('/') => ("/", "/", false, "", false),
            Some(';') => (";", ";", true, "", false),
            Some('?') => ("?", "&", true, "=", false),
            Some('&') => ("&", "&", true, "=", false),
            _ => ("", ",", false, "", false),
        };
        Self { before, between, is_named, empty, keeps_reserved }
    }
}

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

    #[test]
    fn texts_are_filled_in_as_the_specification_shows() {
        let value = |name: &str| match name {
            "var" => Some("value"),
            "hello" => Some("Hello World!"),
            "path" => Some("/foo/bar"),
            "x" => Some("1024"),
            "y" => Some("768"),
            "empty" => Some(""),
            _ => None,
        };
        for (template, uri) in [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{+hello}", "Hello%20World!"),
            ("{+path}/here", "/foo/bar/here"),
            ("X{#var}", "X#value"),
            ("map?{x,y}", "map?1024,768"),
            ("{+x,hello,y}", "1024,Hello%20World!,768"),
            ("X{.x,y}", "X.1024.768"),
            ("{/var,x}/here", "/value/1024/here"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?x,undef}", "?x=1024"),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{var:3}", "val"),
            ("{var:0}{var:+0}", "valuevalue"),
            ("X{undef}{?undef}", "X"),
        ] {
            assert_eq!(expand(template, value), uri, "{template}");
        }
        assert_eq!(required_variables("r://{a}/{+b}{/c}{?d,e}"), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn what_is_filled_in_fits_its_template(text in "\\PC{1,20}") {
            for template in ["a:{x}", "a://b/{x}/c", "a{?x}"] {
                let uri = expand(template, |_| Some(text.as_str()));
                prop_assert!(matches(template, &uri), "{template} {uri}");
            }
        }

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
