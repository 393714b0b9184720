//! Writing the result of a call: as text, rows, JSON, bytes, or to files.

use super::prelude::*;
use crate::cli::json::call::CallJson;
use crate::cli::save;
use crate::host::request::CallOutcome;
use crate::model::ToolResult;
use crate::present::content::{self, ContentPayload};
use crate::util::{jq, json, units};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PrintOptions<'a> {
    pub query: Option<&'a str>,
    pub save: Option<&'a Path>,
    pub ignores_tool_error: bool,
}

impl PrintOptions<'_> {
    /// Checks what can be checked before the request is made.
    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(path) = self.save {
            save::check(path)?;
        }
        let check =
            |filter| jq::check(filter).map_err(|why| Error::usage(format!("--query: {why}")));
        self.query.map_or(Ok(()), check)
    }
}

/// Writes the outcome of a call that was dispatched. The caller handles its error.
pub(super) fn print(
    options: PrintOptions<'_>,
    output: &Output,
    format: Format,
    outcome: &CallOutcome,
) -> CommandResult {
    output.note_routing(outcome.metadata.routing.as_ref());
    match outcome.result.as_ref() {
        Ok(result) => {
            // If both streams go to the terminal, the error message is printed once.
            let is_repeated = output.is_terminal()
                && !options.ignores_tool_error
                && outcome.error().is_some_and(|error| repeats_result(error, result));
            print_result(options, output, format, result, &CallJson::from(outcome), is_repeated)
        }
        Err(_) if matches!(format, Format::Json | Format::Yaml) => {
            output.value(format, &CallJson::from(outcome))
        }
        Err(_) => Ok(()),
    }
}

/// Writes a result, whose JSON is `value`. As text it is left out if the error repeats it.
pub(super) fn print_result(
    options: PrintOptions<'_>,
    output: &Output,
    format: Format,
    result: &ToolResult,
    value: &impl Serialize,
    is_repeated: bool,
) -> CommandResult {
    // A noisy server repeats itself on each call.
    warn_some(output, &result.warnings, 1);
    // The expression was not written for error messages.
    let query = options.query.filter(|_| result.success);
    let filtered = query.map(|filter| filter_result(filter, result)).transpose();
    // Without it, everything is written: the call was made, and is not to be made again for this.
    let (filtered, failure) = match filtered {
        Ok(values) => (values, Ok(())),
        Err(error) => (None, Err(error)),
    };
    if let Some(path) = options.save {
        save_result(path, output, result, filtered.as_deref())?;
    }
    let written = match (format, filtered) {
        (Format::Json | Format::Yaml, Some(values)) => {
            values.iter().try_for_each(|value| output.value(format, value))
        }
        (Format::Json | Format::Yaml, None) => output.value(format, value),
        _ if options.save.is_some() => Ok(()),
        (Format::Raw, Some(values)) => output.raw(lines(&values).as_bytes()),
        (Format::Raw, None) => {
            output.raw(&payloads(result)?.into_iter().flat_map(|p| p.bytes).collect::<Vec<u8>>())
        }
        (Format::Table, values) => {
            let values = values.unwrap_or_else(|| vec![content::filter_input(result)]);
            output.page(&rows(&values, output.width()))
        }
        (_, Some(values)) => {
            let mut page = Page::default();
            if !values.is_empty() {
                page.text(Role::Plain, 0, lines(&values).trim_end_matches('\n'));
            }
            output.page(&page)
        }
        (_, None) if is_repeated => Ok(()),
        (_, None) => output.page(&content::page(result, output.verbosity() > 0)),
    };
    written.and(failure)
}

/// Whether the `error:` line will repeat the result exactly.
fn repeats_result(error: &Error, result: &ToolResult) -> bool {
    result.structured.is_none()
        && result.output.as_str().is_some_and(|text| text.trim() == error.message().trim())
}

fn filter_result(filter: &str, result: &ToolResult) -> Result<Vec<Value>, CommandError> {
    jq::query(filter, &content::filter_input(result)).map_err(|why| {
        Error::partial(format!("--query: {why}"))
            .with_hint("the whole result was written instead")
            .into()
    })
}

pub(super) fn payloads(result: &ToolResult) -> Result<Vec<ContentPayload>, Error> {
    content::payloads(result).map_err(|block| {
        Error::protocol(format!("block {block} of the result is not valid base64"))
            .with_hint("--json prints the result unchanged")
    })
}

/// One line per value: text unchanged, everything else as JSON.
fn lines(values: &[Value]) -> String {
    let mut text = String::new();
    for value in values {
        match value {
            Value::String(value) => text.push_str(value),
            other => text.push_str(&json::pretty(other)),
        }
        text.push('\n');
    }
    text
}

fn save_result(
    path: &Path,
    output: &Output,
    result: &ToolResult,
    filtered: Option<&[Value]>,
) -> Result<(), CommandError> {
    let payloads = match filtered {
        Some(values) => {
            vec![ContentPayload {
                bytes: lines(values).into_bytes(),
                media_type: "application/json".to_owned(),
            }]
        }
        None => payloads(result)?,
    };
    if payloads.is_empty() {
        output.warn("the result has nothing to save");
    }
    let kinds: Vec<&str> = payloads.iter().map(|p| p.media_type.as_str()).collect();
    for (target, payload) in save::output_paths(path, &kinds).iter().zip(&payloads) {
        save::write(target, &payload.bytes)?;
        let size = units::show_size(payload.bytes.len() as u64);
        output.note(
            Line::plain("saved ")
                .then(Role::Name, target.display().to_string())
                .then(Role::Dim, format!(" ({}, {size})", payload.media_type)),
        );
    }
    Ok(())
}

/// Objects as rows, their keys as columns; anything else as one column.
fn rows(values: &[Value], width: Option<usize>) -> Page {
    let items: Vec<&Value> = match values {
        [Value::Array(items)] => items.iter().collect(),
        values => values.iter().collect(),
    };
    let mut keys: Vec<&str> = Vec::new();
    for key in items.iter().filter_map(|item| item.as_object()).flat_map(|map| map.keys()) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Line::default(),
        Some(Value::String(text)) => Line::plain(text),
        Some(other) => Line::plain(json::compact(other)),
    };
    if keys.is_empty() {
        let mut page = Page::default();
        for item in items {
            page.push(cell(Some(item)));
        }
        return page;
    }
    let mut table = Table::new(keys.iter().map(|key| TableColumn::new(key).shrinks_to(8)));
    for item in &items {
        let map = item.as_object();
        table.row(keys.iter().enumerate().map(|(index, key)| match map {
            Some(map) => cell(map.get(*key)),
            None if index == 0 => cell(Some(item)),
            None => Line::default(),
        }));
    }
    table.layout(width)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::cli::output::{streams::OutputOptions, streams::tests::captured};
    use crate::model::{CallId, CallMetadata, Origin, ToolDefinition, ToolName, ToolSource};
    use crate::present::page::LineRenderer;

    fn outcome(result: ToolResult) -> CallOutcome {
        let origin = Origin::Server("s".to_owned());
        CallOutcome {
            definition: Arc::new(ToolDefinition::new(
                ToolName::plain("t"),
                ToolSource::Mcp,
                "mcp",
                origin,
            )),
            result: Ok(result),
            metadata: CallMetadata {
                call_id: CallId("1".into()),
                duration: Duration::from_millis(1),
                person_wait: Duration::ZERO,
                connect: None,
                attempts: 1,
                protocol: None,
                routing: None,
                host_pid: None,
                unrecorded: None,
            },
        }
    }

    fn printed(options: PrintOptions<'_>, format: Format, result: ToolResult) -> (String, String) {
        let (output, out, err) = captured(OutputOptions::default(), false);
        print(options, &output, format, &outcome(result)).unwrap();
        (out.text(), err.text())
    }

    #[test]
    fn a_result_goes_to_stdout_and_warnings_to_stderr() {
        let result = ToolResult { warnings: vec!["odd".to_owned()], ..ToolResult::text("hi") };
        assert_eq!(
            printed(PrintOptions::default(), Format::Text, result),
            ("hi\n".to_owned(), "warning: odd\n".to_owned())
        );
    }

    #[test]
    fn many_warnings_are_counted() {
        let result = || ToolResult {
            warnings: ["one", "two", "three"].map(str::to_owned).to_vec(),
            ..ToolResult::text("hi")
        };
        assert_eq!(
            printed(PrintOptions::default(), Format::Text, result()).1,
            "warning: one\n2 more warnings, -v shows all\n"
        );
        let (output, _, err) =
            captured(OutputOptions { verbose: 1, ..OutputOptions::default() }, false);
        print(PrintOptions::default(), &output, Format::Text, &outcome(result())).unwrap();
        assert_eq!(err.text(), "warning: one\nwarning: two\nwarning: three\n");
    }

    #[test]
    fn raw_is_byte_exact() {
        let result = ToolResult::text("a\u{1b}[0m\nb");
        assert_eq!(printed(PrintOptions::default(), Format::Raw, result).0, "a\u{1b}[0m\nb");
    }

    #[test]
    fn the_words_of_a_refusal_are_printed_once() {
        let on_a_terminal = |ignores_tool_error: bool| {
            let options = PrintOptions { ignores_tool_error, ..PrintOptions::default() };
            let (output, out, _) = captured(OutputOptions::default(), true);
            print(options, &output, Format::Text, &outcome(ToolResult::failure("no"))).unwrap();
            out.text()
        };
        assert_eq!(on_a_terminal(false), "");
        assert_eq!(on_a_terminal(true), "no\n");
        assert_eq!(
            printed(PrintOptions::default(), Format::Text, ToolResult::failure("no")).0,
            "no\n"
        );
        let mut more = ToolResult::failure("no");
        more.output = json!("no\nand why");
        more.content = vec![json!({ "type": "text", "text": "no\nand why" })];
        assert_eq!(printed(PrintOptions::default(), Format::Text, more).0, "no\nand why\n");
    }

    #[test]
    fn an_expression_is_checked_without_running_it() {
        let check =
            |filter| PrintOptions { query: Some(filter), ..PrintOptions::default() }.check();
        for filter in [".a", "error(\"only when it runs\")", "def f: 1; f", ".a # comment", "keys"]
        {
            assert!(check(filter).is_ok(), "{filter}");
        }
        for filter in [".[", "", "nonsense(1)", ". |"] {
            let error = check(filter).unwrap_err();
            assert_eq!(error.kind().exit_code(), 2, "{filter}");
            assert!(!error.message().contains("if false"), "{error}");
        }
    }

    #[test]
    fn rows_are_made_of_objects() {
        let values = [json!([{ "id": 1, "name": "a" }, { "id": 22, "tags": ["x"] }, "odd"])];
        assert_snapshot!(LineRenderer::default().page(&rows(&values, Some(40))), @r#"
        id   name  tags
        1    a
        22         ["x"]
        odd
        "#);
        assert_eq!(LineRenderer::default().page(&rows(&[json!([1, "b"])], None)), "1\nb\n");
    }

    #[test]
    fn results_are_saved_as_bytes_under_the_users_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pic.png");
        let result = ToolResult {
            success: true,
            content: vec![
                json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw==" }),
                json!({ "type": "resource",
                        "resource": { "uri": "file:///etc/passwd", "text": "x" } }),
            ],
            ..ToolResult::default()
        };
        let (out, err) = printed(
            PrintOptions { save: Some(&path), ..PrintOptions::default() },
            Format::Text,
            result,
        );
        assert_eq!(out, "");
        assert!(err.contains("pic-1.png (image/png, 4 B)"), "{err}");
        assert_eq!(std::fs::read(dir.path().join("pic-1.png")).unwrap(), b"\x89PNG");
        assert_eq!(std::fs::read(dir.path().join("pic-2.txt")).unwrap(), b"x");
    }

    #[test]
    fn binary_data_that_is_none_is_the_servers_error() {
        let result = ToolResult {
            content: vec![json!({ "type": "image", "data": "%%%" })],
            ..ToolResult::default()
        };
        let (output, _, _) = captured(OutputOptions::default(), false);
        let stop =
            print(PrintOptions::default(), &output, Format::Raw, &outcome(result)).unwrap_err();
        assert!(matches!(stop, CommandError::Failed(error) if error.kind().exit_code() == 10));
    }
}
