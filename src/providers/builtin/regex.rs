//! `builtin.regex`: looks for a regular expression in a text, and replaces what it matches.
//!
//! The engine takes time proportional to the text, for any expression. Looking for all matches
//! can take longer, so the call's end is looked at between two of them.

use regex::{Captures, Regex, RegexBuilder};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    BuiltinFunction, FunctionBody, FunctionFuture, FunctionResult, in_thread, input, stopped,
};
use crate::model::{Error, ToolContext, ToolResult};
use crate::providers::arguments::{Arguments, flag, text};
use crate::util::units::show_size;

/// The work in errors.
const WHAT: &str = "search";
const MAX_TEXT_BYTES: usize = 1 << 20;
/// The largest compiled expression, in bytes.
const MAX_PROGRAM_BYTES: usize = 1 << 20;
const MAX_RESULT_BYTES: usize = 4 << 20;
const MAX_MATCHES: usize = 10_000;
/// How many matches are found when the call does not say.
const DEFAULT_MATCHES: usize = 1_000;

/// Row of the table of built-in functions: the first match.
pub(super) const MATCH: BuiltinFunction = BuiltinFunction {
    module: "builtin.regex",
    name: "match",
    aliases: &[],
    title: "Match a regular expression",
    description: "Reports whether a regular expression matches anywhere in a text, with the first \
                  match and its groups. Anchor it with ^ and $ to match the whole text.",
    input: || search_input(&[]),
    output: None,
    idempotent: true,
    run: FunctionBody::Async(|context, arguments| run(context, arguments, first)),
};

/// Row of the table of built-in functions: all matches.
pub(super) const FIND_ALL: BuiltinFunction = BuiltinFunction {
    module: "builtin.regex",
    name: "find_all",
    aliases: &[],
    title: "Find all matches",
    description: "Finds all non-overlapping matches of a regular expression in a text, with their \
                  groups and their positions in characters.",
    input: || {
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": MAX_MATCHES,
            "default": DEFAULT_MATCHES, "description": "Maximum number of matches to list" });
        search_input(&[("limit", limit)])
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Async(|context, arguments| run(context, arguments, all)),
};

/// Row of the table of built-in functions: replacing matches.
pub(super) const REPLACE: BuiltinFunction = BuiltinFunction {
    module: "builtin.regex",
    name: "replace",
    aliases: &[],
    title: "Replace matches",
    description: "Replaces all matches of a regular expression in a text, or the first few. In the \
                  replacement $1 and ${name} stand for groups, and $$ for a dollar sign.",
    input: || {
        let count = json!({ "type": "integer", "minimum": 1,
            "description": "Maximum number of matches to replace; all by default" });
        let mut schema =
            search_input(&[("replacement", text("The replacement")), ("count", count)]);
        schema["required"] = json!(["pattern", "text", "replacement"]);
        schema["examples"][0]["replacement"] = json!("<$0>");
        schema
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Async(|context, arguments| run(context, arguments, replace)),
};

/// The schema of a function: what all of them take, and `more`.
fn search_input(more: &[(&str, Value)]) -> Value {
    let pattern = "The expression, in the syntax of Rust's regex: like Perl's, but without \
                   look-around and back-references";
    let mut properties = vec![("pattern", text(pattern)), ("text", text("The text to search"))];
    properties.extend_from_slice(more);
    properties.extend([
        ("ignore_case", flag("Whether to ignore case")),
        ("multi_line", flag("Whether ^ and $ match at each line")),
        ("dot_all", flag("Whether . matches line breaks too")),
    ]);
    let mut schema = input(&properties, &["pattern", "text"]);
    schema["examples"] = json!([{ "pattern": "[0-9]+", "text": "7 of 12" }]);
    schema
}

struct RegexRequest {
    regex: Regex,
    text: String,
    limit: Option<usize>,
    replacement: String,
    cancel: CancellationToken,
}

type RegexWork = fn(&RegexRequest) -> FunctionResult;

fn run<'a>(
    context: &'a ToolContext,
    arguments: Arguments<'a>,
    work: RegexWork,
) -> FunctionFuture<'a> {
    Box::pin(async move {
        let request = read(context, arguments)?;
        // When the call is cancelled the thread ends with the match it is looking for.
        in_thread(context, WHAT, move || work(&request)).await?
    })
}

fn read(context: &ToolContext, arguments: Arguments<'_>) -> Result<RegexRequest, Error> {
    let (pattern, text) = (arguments.text("pattern")?, arguments.text("text")?);
    if text.len() > MAX_TEXT_BYTES {
        let (size, limit) = (show_size(text.len() as u64), show_size(MAX_TEXT_BYTES as u64));
        return Err(Error::tool(format!("'text' has {size}, and the limit is {limit}")));
    }
    let limit = arguments.count("limit", 1)?.or(arguments.count("count", 1)?);
    let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let regex = RegexBuilder::new(pattern)
        .case_insensitive(arguments.flag("ignore_case")?)
        .multi_line(arguments.flag("multi_line")?)
        .dot_matches_new_line(arguments.flag("dot_all")?)
        .size_limit(MAX_PROGRAM_BYTES)
        .build()
        .map_err(|error| Error::tool(format!("'pattern' is not an expression: {error}")))?;
    let (text, cancel) = (text.to_owned(), context.cancel.clone());
    let replacement = arguments.optional_text("replacement")?.unwrap_or_default().to_owned();
    Ok(RegexRequest { regex, text, limit, replacement, cancel })
}

/// Counts characters up to places in a text that come one after the other.
struct CharacterCount<'t> {
    text: &'t str,
    byte: usize,
    characters: usize,
}

impl CharacterCount<'_> {
    fn at(&mut self, byte: usize) -> usize {
        let between = self.text.get(self.byte..byte).unwrap_or_default();
        self.characters += between.chars().count();
        self.byte = byte;
        self.characters
    }
}

/// A match as JSON: the text, the position, and the groups by number and name.
fn match_json(regex: &Regex, captures: &Captures<'_>, count: &mut CharacterCount<'_>) -> Value {
    let Some(whole) = captures.get(0) else { return Value::Null };
    let (start, end) = (count.at(whole.start()), count.at(whole.end()));
    let group = |group: Option<regex::Match<'_>>| group.map(|group| group.as_str().to_owned());
    let groups: Vec<Option<String>> = captures.iter().skip(1).map(group).collect();
    let mut value = json!({ "text": whole.as_str(), "start": start, "end": end });
    if !groups.is_empty() {
        value["groups"] = json!(groups);
    }
    let named: Map<String, Value> = regex
        .capture_names()
        .flatten()
        .map(|name| (name.to_owned(), json!(group(captures.name(name)))))
        .collect();
    if !named.is_empty() {
        value["named"] = Value::Object(named);
    }
    value
}

fn first(request: &RegexRequest) -> FunctionResult {
    if request.cancel.is_cancelled() {
        return Err(stopped(WHAT));
    }
    let mut count = CharacterCount { text: &request.text, byte: 0, characters: 0 };
    let captures = request.regex.captures(&request.text);
    let first = captures.map(|captures| match_json(&request.regex, &captures, &mut count));
    Ok(ToolResult::json(json!({ "matches": first.is_some(), "match": first })))
}

fn all(request: &RegexRequest) -> FunctionResult {
    let limit = request.limit.unwrap_or(DEFAULT_MATCHES).min(MAX_MATCHES);
    let mut count = CharacterCount { text: &request.text, byte: 0, characters: 0 };
    let mut matches = Vec::new();
    let mut bytes = 0;
    let mut is_cut = false;
    for captures in request.regex.captures_iter(&request.text) {
        if request.cancel.is_cancelled() {
            return Err(stopped(WHAT));
        }
        bytes += captures.iter().flatten().map(|group| group.as_str().len()).sum::<usize>();
        if matches.len() == limit || bytes > MAX_RESULT_BYTES {
            is_cut = true;
            break;
        }
        matches.push(match_json(&request.regex, &captures, &mut count));
    }
    let listed = matches.len();
    let mut result = ToolResult::json(json!({ "matches": matches, "complete": !is_cut }));
    if is_cut {
        result.warnings.push(format!("there are more matches; only the first {listed} are listed"));
    }
    Ok(result)
}

fn replace(request: &RegexRequest) -> FunctionResult {
    let limit = request.limit.unwrap_or(usize::MAX);
    let (mut replaced, mut count, mut end) = (String::new(), 0, 0);
    for captures in request.regex.captures_iter(&request.text).take(limit) {
        let Some(whole) = captures.get(0) else { break };
        if request.cancel.is_cancelled() {
            return Err(stopped(WHAT));
        }
        replaced.push_str(request.text.get(end..whole.start()).unwrap_or_default());
        captures.expand(&request.replacement, &mut replaced);
        end = whole.end();
        count += 1;
        if replaced.len() > MAX_RESULT_BYTES {
            let limit = show_size(MAX_RESULT_BYTES as u64);
            return Err(Error::tool(format!("the result is longer than {limit}")));
        }
    }
    replaced.push_str(request.text.get(end..).unwrap_or_default());
    Ok(ToolResult::json(json!({ "text": replaced, "count": count })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::Signal;
    use crate::model::{CallId, ErrorKind};
    use crate::providers::local;

    async fn call(work: RegexWork, arguments: Value) -> FunctionResult {
        let context = ToolContext::empty(CallId("c".into()));
        let arguments = arguments.as_object().unwrap().clone();
        local::answered(run(&context, Arguments(&arguments), work).await)
    }

    async fn output(work: RegexWork, arguments: Value) -> Value {
        call(work, arguments).await.unwrap().output
    }

    #[tokio::test]
    async fn the_first_match_comes_with_its_groups_and_its_place_in_characters() {
        let first_match =
            output(first, json!({ "pattern": "(?P<year>[0-9]{4})-(x)?", "text": "größe 2024-05" }))
                .await;
        assert_eq!(
            first_match,
            json!({ "matches": true, "match": {
                "text": "2024-", "start": 6, "end": 11,
                "groups": ["2024", null], "named": { "year": "2024" },
            } })
        );
        let none = output(first, json!({ "pattern": "^a$", "text": "A" })).await;
        assert_eq!(none, json!({ "matches": false, "match": null }));
        let same =
            output(first, json!({ "pattern": "^a$", "text": "A", "ignore_case": true })).await;
        assert_eq!(same["matches"], true);
    }

    #[tokio::test]
    async fn all_matches_are_listed_up_to_the_limit() {
        let result = call(all, json!({ "pattern": "[a-z]", "text": "a1b2c", "limit": 2 })).await;
        let result = result.unwrap();
        assert_eq!(result.output["complete"], false);
        assert_eq!(result.output["matches"][1], json!({ "text": "b", "start": 2, "end": 3 }));
        assert_eq!(result.warnings, ["there are more matches; only the first 2 are listed"]);
        let lines =
            output(all, json!({ "pattern": "^.$", "text": "a\nb", "multi_line": true })).await;
        assert_eq!(lines["matches"].as_array().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_replacement_may_use_groups() {
        let swapped =
            json!({ "pattern": "(\\w)(\\d)", "text": "a1 b2", "replacement": "$2${1}$$" });
        assert_eq!(output(replace, swapped).await, json!({ "text": "1a$ 2b$", "count": 2 }));
        let once = json!({ "pattern": "b*", "text": "abb", "replacement": "-", "count": 1 });
        assert_eq!(output(replace, once).await, json!({ "text": "-abb", "count": 1 }));
    }

    #[tokio::test]
    async fn what_cannot_be_searched_is_refused_in_words() {
        for (arguments, expected) in [
            (json!({ "pattern": "(a", "text": "" }), "'pattern' is not an expression"),
            (json!({ "pattern": "(?=a)", "text": "" }), "look-around"),
            (json!({ "pattern": "(\\w{1000}){1000}", "text": "" }), "size limit"),
            (json!({ "pattern": "a", "text": "x".repeat(MAX_TEXT_BYTES + 1) }), "limit is"),
        ] {
            let refused = call(first, arguments).await.unwrap();
            let text = refused.output.as_str().unwrap();
            assert!(!refused.success && text.contains(expected), "{text}");
        }
        let long = "x".repeat(10_000);
        let flood = json!({ "pattern": "a", "text": "a".repeat(1_000), "replacement": long });
        let refused = call(replace, flood).await.unwrap();
        assert!(!refused.success, "{:?}", refused.output);
    }

    #[tokio::test]
    async fn a_cancelled_call_ends_between_two_matches() {
        let context = ToolContext::empty(CallId("c".into()));
        context.cancel.cancel();
        let arguments = json!({ "pattern": "a", "text": "aaa" });
        let request = read(&context, Arguments(arguments.as_object().unwrap())).unwrap();
        let error = all(&request).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted(Signal::Interrupt));
    }
}
