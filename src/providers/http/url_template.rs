//! URL templates.

use secrecy::ExposeSecret as _;
use url::{Url, form_urlencoded};

use super::template::{HttpPlaceholder, TemplateValues, missing_value_error};
use crate::model::{Diagnostic, Error};
use crate::net::address::display_url;
use crate::providers::template::{TemplatePart, TextTemplate};
use crate::util::percent;

/// Stands for a placeholder while the URL is parsed, which encodes it.
const MARK: &str = "\u{e000}";
const ENCODED_MARK: &str = "%EE%80%80";

const NO_URL: &str = "start it with http:// or https://";

#[derive(Debug, Clone)]
pub(super) struct UrlTemplate {
    /// Scheme, host and port; no path and no query.
    origin: Url,
    /// The path's segments; literal parts are encoded already.
    segments: Vec<TextTemplate<HttpPlaceholder>>,
    query: Vec<QueryPart>,
}

#[derive(Debug, Clone)]
enum QueryPart {
    Literal(String),
    Templated(String, TextTemplate<HttpPlaceholder>),
}

impl UrlTemplate {
    /// Reads `endpoint_url`. A relative one is appended to `base`, which has no placeholders.
    pub(super) fn read(
        written: TextTemplate<HttpPlaceholder>,
        base: Option<&str>,
    ) -> Result<Self, Diagnostic> {
        let (text, placeholders) = marked(joined(written, base)?)?;
        let url = parse(&text)?;
        let markers = |text: &str| text.matches(ENCODED_MARK).count();
        if markers(url.path()) + url.query().map_or(0, markers) != placeholders.len() {
            return Err(wrong(
                "a '..' in the path removes a placeholder",
                "write the path without it",
            ));
        }
        let mut placeholders = placeholders.into_iter();
        let mut template = |text: &str, mark: &str| {
            let mut template = TextTemplate { parts: Vec::new() };
            for (index, literal) in text.split(mark).enumerate() {
                let before = placeholders.by_ref().take(index.min(1));
                template.parts.extend(before.map(TemplatePart::Placeholder));
                if !literal.is_empty() {
                    template.parts.push(TemplatePart::Literal(literal.to_owned()));
                }
            }
            template
        };
        let segments = url.path_segments().into_iter().flatten();
        let segments = segments.map(|segment| template(segment, ENCODED_MARK)).collect();
        let pairs = url.query().into_iter().flat_map(|query| query.split('&'));
        let pairs = pairs.filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| match pair.split_once('=') {
            Some((name, value)) if value.contains(ENCODED_MARK) => {
                // A value is decoded here, because it is encoded again when it is filled in.
                let one = value.replace('=', "%3D");
                let decoded = form_urlencoded::parse(one.as_bytes()).next();
                let value = decoded.map(|(value, _)| value.into_owned()).unwrap_or_default();
                QueryPart::Templated(name.to_owned(), template(&value, MARK))
            }
            _ => QueryPart::Literal(pair.to_owned()),
        });
        let query: Vec<QueryPart> = query.collect();
        let in_name = |pair: &QueryPart| match pair {
            QueryPart::Literal(name) | QueryPart::Templated(name, _) => name.contains(ENCODED_MARK),
        };
        if query.iter().any(in_name) {
            return Err(wrong(
                "an argument cannot be the name of a query parameter",
                "write name={argument}",
            ));
        }
        let mut origin = url;
        origin.set_path("");
        origin.set_query(None);
        Ok(Self { origin, segments, query })
    }

    pub(super) fn origin(&self) -> &Url {
        &self.origin
    }

    pub(super) fn segments(&self) -> &[TextTemplate<HttpPlaceholder>] {
        &self.segments
    }

    pub(super) fn query_templates(&self) -> impl Iterator<Item = &TextTemplate<HttpPlaceholder>> {
        self.query.iter().filter_map(|pair| match pair {
            QueryPart::Templated(_, template) => Some(template),
            QueryPart::Literal(_) => None,
        })
    }

    pub(super) fn path_has_context(&self) -> bool {
        self.segments
            .iter()
            .flat_map(TextTemplate::placeholders)
            .any(|placeholder| matches!(placeholder, HttpPlaceholder::Context(_)))
    }

    /// How it is shown: with its placeholders, without its query.
    pub(super) fn shown(&self) -> String {
        let mut shown = display_url(&self.origin);
        shown.truncate(shown.trim_end_matches('/').len());
        for segment in &self.segments {
            shown.push('/');
            for part in &segment.parts {
                match part {
                    TemplatePart::Literal(text) => shown.push_str(text),
                    TemplatePart::Placeholder(placeholder) => shown.push_str(&placeholder.shown()),
                }
            }
        }
        shown
    }

    /// The URL of one request. `more` is the rest of the query: names and values.
    pub(super) fn fill(
        &self,
        values: &TemplateValues<'_>,
        more: &[(String, String)],
    ) -> Result<Url, Error> {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            path.push_str(&fill_segment(segment, values)?);
        }
        let mut pairs = Vec::new();
        for pair in &self.query {
            match pair {
                QueryPart::Literal(text) => pairs.push(text.clone()),
                QueryPart::Templated(name, template) => {
                    let value = values.text(template)?;
                    pairs.extend(value.map(|value| format!("{name}={}", encode(&value))));
                }
            }
        }
        pairs
            .extend(more.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))));
        let mut url = self.origin.clone();
        url.set_path(&path);
        if url.path() != path {
            // Nothing should get here; a path that was read differently is not sent.
            return Err(Error::internal("the path of the request changed while it was built"));
        }
        url.set_query((!pairs.is_empty()).then(|| pairs.join("&")).as_deref());
        Ok(url)
    }
}

fn fill_segment(
    segment: &TextTemplate<HttpPlaceholder>,
    values: &TemplateValues<'_>,
) -> Result<String, Error> {
    let value = |placeholder: &HttpPlaceholder| {
        let value = values.value(placeholder);
        if let HttpPlaceholder::Argument(name) = placeholder {
            let argument = values.arguments.get(name);
            let wrong =
                if argument.is_some_and(|argument| argument.is_array() || argument.is_object()) {
                    "is in the path, which takes one value"
                } else if value.is_none() {
                    "is missing: it is in the path"
                } else if value.as_deref() == Some("") {
                    "is empty, but it is in the path"
                } else {
                    return Ok(value.as_deref().map(encode));
                };
            return Err(Error::usage(format!("'{name}' {wrong}")));
        }
        value.ok_or_else(|| missing_value_error(placeholder)).map(|value| Some(encode(&value)))
    };
    let filled = segment.render(value, missing_value_error)?.unwrap_or_default();
    if is_dots(&filled) {
        let names: Vec<&str> = segment.arguments().collect();
        return Err(Error::usage(format!(
            "'{}' would make the path segment '{filled}', which would change the directory",
            names.join("', '")
        )));
    }
    Ok(filled)
}

/// A value encoded for a path segment or a query, so that it cannot end its segment, its pair or
/// the path.
fn encode(text: &str) -> String {
    percent::encode(text, "-._~*()")
}

/// Whether a segment is `.` or `..`, in any spelling.
fn is_dots(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

fn wrong(message: &str, hint: &str) -> Diagnostic {
    Diagnostic::error(message).with_hint(hint)
}

fn placeholder_in_origin() -> Diagnostic {
    let hint = "placeholders are allowed in the path and in the query";
    wrong("an argument cannot choose scheme, host or port", hint)
}

fn joined(
    written: TextTemplate<HttpPlaceholder>,
    base: Option<&str>,
) -> Result<Vec<TemplatePart<HttpPlaceholder>>, Diagnostic> {
    let mut parts = written.parts;
    let flat: String = parts
        .iter()
        .map(|part| match part {
            TemplatePart::Literal(text) => text.as_str(),
            TemplatePart::Placeholder(_) => MARK,
        })
        .collect();
    // Does a placeholder stand before the end of a scheme?
    if flat
        .split_once("://")
        .is_some_and(|(scheme, _)| scheme.contains(MARK) && !scheme.contains(['/', '?', '#']))
    {
        return Err(placeholder_in_origin());
    }
    let lead = flat.split(MARK).next().unwrap_or_default();
    if lead.contains("://") {
        return Ok(parts);
    }
    if lead.starts_with("//") {
        return Err(wrong("this names a host without a scheme", "start it with https://"));
    }
    let base = base.ok_or_else(|| {
        wrong(
            "a relative endpoint_url needs a base_url",
            "set base_url in the entry or in defaults, or write the whole URL",
        )
    })?;
    if base.contains(['{', '}']) {
        return Err(wrong("a base_url cannot contain placeholders", "put them into endpoint_url"));
    }
    if base.contains(['?', '#']) {
        return Err(wrong(
            "a base_url cannot have a query or fragment",
            "put the query into 'query'",
        ));
    }
    if !base.contains("://") {
        return Err(wrong(&format!("the base_url '{base}' is not a URL"), NO_URL));
    }
    let base = base.trim_end_matches('/');
    if let Some(TemplatePart::Literal(first)) = parts.first_mut() {
        *first = first.strip_prefix('/').unwrap_or(first).to_owned();
    }
    let slash = if lead.starts_with('?') { "" } else { "/" };
    parts.insert(0, TemplatePart::Literal(format!("{base}{slash}")));
    Ok(parts)
}

/// The text with marks for the placeholders behind the authority, and those in their order.
fn marked(
    parts: Vec<TemplatePart<HttpPlaceholder>>,
) -> Result<(String, Vec<HttpPlaceholder>), Diagnostic> {
    let (mut text, mut placeholders) = (String::new(), Vec::new());
    for part in parts {
        let after_authority =
            text.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?', '#', '\\']));
        match part {
            TemplatePart::Literal(literal)
                if literal.contains(MARK)
                    || literal.to_ascii_uppercase().contains(ENCODED_MARK) =>
            {
                return Err(wrong("the character U+E000 cannot be in a URL", "leave it out"));
            }
            TemplatePart::Literal(literal) => text.push_str(&literal),
            TemplatePart::Placeholder(HttpPlaceholder::Secret(value, _)) if !after_authority => {
                text.push_str(value.expose_secret());
            }
            TemplatePart::Placeholder(_) if !after_authority => {
                return Err(placeholder_in_origin());
            }
            TemplatePart::Placeholder(placeholder) => {
                text.push_str(MARK);
                placeholders.push(placeholder);
            }
        }
    }
    Ok((text, placeholders))
}

fn parse(text: &str) -> Result<Url, Diagnostic> {
    let invalid = |why| wrong(&format!("this is not a URL: {why}"), NO_URL);
    let url = Url::parse(text).map_err(invalid)?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        let message = format!("the scheme '{}' is not supported", url.scheme());
        return Err(wrong(&message, "use http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "a URL must not carry a user name or a password",
            "use headers or auth: URLs are shown and logged",
        ));
    }
    if let Some(fragment) = url.fragment() {
        let what = if fragment.contains(ENCODED_MARK) { "a placeholder" } else { "text" };
        let message = format!("{what} after '#' is never sent");
        return Err(wrong(&message, "write %23 for a '#' itself"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::template::TemplateReader;
    use super::*;
    use crate::config::consent::{Expander, Grant};
    use crate::config::environment::FixedEnvironment;
    use crate::config::expanded::ExpandedValues;
    use crate::model::JsonObject;

    fn read(text: &str, base: Option<&str>) -> Result<UrlTemplate, Diagnostic> {
        let environment = FixedEnvironment {
            vars: [("BOT_TOKEN", "12:a/b"), ("API", "https://api.example.com/v1")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..FixedEnvironment::default()
        };
        let expanded = ExpandedValues::default();
        let grant = Grant::for_tests();
        let expander = Expander::new(&grant, &environment, Path::new("/"), &expanded);
        let template = TemplateReader { expander, all_secret: false }.read(text).unwrap();
        UrlTemplate::read(template, base)
    }

    fn fill(target: &UrlTemplate, arguments: Value) -> Result<String, String> {
        let Value::Object(arguments) = arguments else { panic!("not an object") };
        let values = TemplateValues { arguments: &arguments, context: None, masked: false };
        target.fill(&values, &[]).map(String::from).map_err(|error| error.to_string())
    }

    fn filled(text: &str, arguments: Value) -> String {
        fill(&read(text, Some("http://localhost:8000")).unwrap(), arguments).unwrap()
    }

    #[test]
    fn values_fill_segments_and_query_values() {
        let arguments = json!({ "a": "x y/z", "n": 3, "q": "é&=" });
        for (text, expected) in [
            ("https://h.example/v1/{a}/b", "https://h.example/v1/x%20y%2Fz/b"),
            ("https://h.example/v1/a-{n}.json", "https://h.example/v1/a-3.json"),
            (
                "https://h.example/{n}{a}?q={q}&r=1",
                "https://h.example/3x%20y%2Fz?q=%C3%A9%26%3D&r=1",
            ),
            ("https://h.example/?x={missing}&y=a%20b", "https://h.example/?y=a%20b"),
            ("https://h.example/?f=a={n}&k={q}", "https://h.example/?f=a%3D3&k=%C3%A9%26%3D"),
            ("https://h.example?x=a+{n}", "https://h.example/?x=a%203"),
            ("/api/{n}", "http://localhost:8000/api/3"),
            ("{n}/x", "http://localhost:8000/3/x"),
            ("${API}/{n}", "https://api.example.com/v1/3"),
            ("https://h.example/bot${BOT_TOKEN}/x", "https://h.example/bot12%3Aa%2Fb/x"),
            ("https://zq.example/zqq/{n}", "https://zq.example/zqq/3"),
        ] {
            assert_eq!(filled(text, arguments.clone()), expected, "{text}");
        }
    }

    #[test]
    fn a_base_keeps_its_path() {
        let target = read("/tasks", Some("http://localhost:8000/api/")).unwrap();
        assert_eq!(fill(&target, json!({})).unwrap(), "http://localhost:8000/api/tasks");
        assert_eq!(read("/t/{id}", Some("https://h/x")).unwrap().shown(), "https://h/x/t/{id}");
    }

    #[test]
    fn placeholders_stay_out_of_scheme_host_and_port() {
        for text in [
            "{x}://h/",
            "https://{x}/",
            "https://{x}.example.com/a",
            "https://h.example{x}",
            "https://h:{x}/",
            "https://{x}@h/",
            "https://h:8{x}",
        ] {
            assert_eq!(read(text, None).err(), Some(placeholder_in_origin()), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_of_the_web_is_refused() {
        for text in [
            "ftp://h/x",
            "file:///etc/passwd",
            "https://u:p@h/",
            "https://u@h/",
            "https://h/#x",
            "https://h/{x}#{y}",
            "//h/x",
            "/x",
            "https://h/{x}/../y",
            "https://h/?{x}=1",
            "https://h:99999/",
            "https:///x y/",
        ] {
            let read = read(text, None);
            assert!(read.is_err() || text.contains(" y"), "{text}: {read:?}");
        }
        let base = |base| read("/x", Some(base)).unwrap_err().message;
        assert_eq!(base("localhost:8000"), "the base_url 'localhost:8000' is not a URL");
        assert_eq!(base("http://h/{a}"), "a base_url cannot contain placeholders");
    }

    #[test]
    fn a_path_value_is_one_segment_that_is_there() {
        let target = read("https://h/a/{x}", None).unwrap();
        for (value, part) in [
            (json!(".."), "would change the directory"),
            (json!("."), "would change the directory"),
            (json!(""), "is empty"),
            (json!(null), "is missing"),
            (json!(["a"]), "takes one value"),
        ] {
            let why = fill(&target, json!({ "x": value })).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(fill(&target, json!({ "x": "%2e%2e" })).unwrap(), "https://h/a/%252e%252e");
        let dot = read("https://h/a/.{x}", None).unwrap();
        assert!(
            fill(&dot, json!({ "x": "." })).unwrap_err().contains("would change the directory")
        );
    }

    #[test]
    fn whatever_could_end_a_segment_is_encoded() {
        assert_eq!(encode("a/b?c#d&e=f%2e"), "a%2Fb%3Fc%23d%26e%3Df%252e");
        assert_eq!(encode("é\r\n\\@:"), "%C3%A9%0D%0A%5C%40%3A");
        assert_eq!(encode("A-z_0.9~"), "A-z_0.9~");
    }

    proptest! {
        /// O06: whatever the arguments hold, the request goes where the entry says, and the path
        /// has as many segments as the template.
        #[test]
        fn arguments_never_choose_where_a_request_goes(
            a in prop_oneof![
                any::<String>(),
                "[/\\\\@:#?%.\r\n\t ;&=a-z]{0,12}",
                Just("@evil.example".to_owned()),
                Just("//evil.example/".to_owned()),
                Just("\r\nHost: evil".to_owned()),
                Just("%2e%2e".to_owned()),
                Just("..".to_owned()),
                Just("ｅｖｉｌ。example".to_owned()),
            ],
            b in any::<String>(),
        ) {
            let target = read("https://api.example.com:8443/v1/{a}/x-{b}?q={b}", None).unwrap();
            let arguments = JsonObject::from_iter([
                ("a".to_owned(), Value::String(a.clone())),
                ("b".to_owned(), Value::String(b.clone())),
            ]);
            let values = TemplateValues { arguments: &arguments, context: None, masked: false };
            match target.fill(&values, &[(a.clone(), b.clone())]) {
                Ok(url) => {
                    prop_assert_eq!(url.scheme(), "https");
                    prop_assert_eq!(url.host_str(), Some("api.example.com"));
                    prop_assert_eq!(url.port(), Some(8443));
                    prop_assert_eq!((url.username(), url.password()), ("", None));
                    prop_assert_eq!(url.fragment(), None);
                    prop_assert_eq!(url.path_segments().unwrap().count(), 3);
                    // What is sent is read as it was built.
                    prop_assert_eq!(&Url::parse(url.as_str()).unwrap(), &url);
                    let pairs: Vec<_> = url.query_pairs().collect();
                    prop_assert_eq!(&pairs[0], &("q".into(), b.as_str().into()));
                    prop_assert_eq!(&pairs[1], &(a.as_str().into(), b.as_str().into()));
                }
                Err(error) => {
                    prop_assert_eq!(error.kind(), crate::model::ErrorKind::Usage);
                    prop_assert!(a.is_empty() || b.is_empty() || matches!(a.as_str(), "." | ".."));
                }
            }
        }
    }
}
