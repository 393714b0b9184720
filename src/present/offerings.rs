//! Prompts, resources and templates, and their contents, as pages.

use serde_json::{Value, json};

use crate::catalogue::Catalogue;
use crate::host::offerings::Offerings;
use crate::model::{
    Error, Prompt, PromptMessages, Resource, ResourceContents, ResourceTemplate, ToolResult,
};
use crate::present::{Line, Page, Role, Table, TableColumn, content, first_sentence};
use crate::util::text;
use crate::util::units::show_size;

const MAX_DESCRIPTION: usize = 160;

pub fn resources(items: &[&Resource], width: Option<usize>) -> Page {
    let rows = items.iter().map(|item| {
        let about = about(item.title.as_deref(), item.description.as_deref(), &item.name);
        (item.uri.as_str(), &*item.server, item.mime_type.as_deref(), item.size, about)
    });
    located("URI", rows, width)
}

pub fn templates(items: &[&ResourceTemplate], width: Option<usize>) -> Page {
    let rows = items.iter().map(|item| {
        let about = about(item.title.as_deref(), item.description.as_deref(), &item.name);
        (item.template.as_str(), &*item.server, item.mime_type.as_deref(), None, about)
    });
    located("TEMPLATE", rows, width)
}

/// Where each is, its server, type and size, and what it is about.
fn located<'a>(
    title: &str,
    rows: impl Iterator<Item = (&'a str, &'a str, Option<&'a str>, Option<u64>, String)>,
    width: Option<usize>,
) -> Page {
    let mut table = Table::new([
        TableColumn::new(title).shrinks_to(24),
        TableColumn::new("SERVER").shrinks_to(8).droppable(1),
        TableColumn::new("TYPE").shrinks_to(10).droppable(2),
        TableColumn::new("SIZE").right().droppable(3),
        TableColumn::new("DESCRIPTION").shrinks_to(16),
    ]);
    for (place, server, mime_type, size, about) in rows {
        table.row([
            Line::styled(Role::Name, place),
            Line::styled(Role::Dim, server),
            Line::plain(mime_type.unwrap_or_default()),
            Line::plain(size.map(show_size).unwrap_or_default()),
            Line::plain(about),
        ]);
    }
    table.layout(width)
}

/// Prompts as a table; optional arguments are in brackets.
pub fn prompts(items: &[&Prompt], width: Option<usize>) -> Page {
    let mut table = Table::new([
        TableColumn::new("NAME").shrinks_to(20),
        TableColumn::new("ARGUMENTS").shrinks_to(12).droppable(1),
        TableColumn::new("DESCRIPTION").shrinks_to(16),
    ]);
    for item in items {
        let arguments: Vec<String> = item
            .arguments
            .iter()
            .map(|a| if a.required { a.name.clone() } else { format!("[{}]", a.name) })
            .collect();
        table.row([
            Line::styled(Role::Name, item.name.full()),
            Line::plain(arguments.join(" ")),
            Line::plain(about(item.description.as_deref(), item.title.as_deref(), "")),
        ]);
    }
    table.layout(width)
}

fn about(first: Option<&str>, second: Option<&str>, name: &str) -> String {
    let title = first.or(second).unwrap_or(name);
    text::shorten(&first_sentence(title), MAX_DESCRIPTION).into_owned()
}

/// The error of a failed listing, if any: exit code 11 if at least one server responded.
pub fn verdict<T>(offerings: &Offerings<T>) -> Option<Error> {
    let servers = Catalogue { servers: offerings.servers.clone(), ..Catalogue::default() };
    super::catalogue::verdict(&servers, 0, offerings.servers.iter().any(|s| s.error.is_none()))
}

pub fn as_result(read: &ResourceContents) -> ToolResult {
    let mut result = ToolResult { success: true, ..ToolResult::default() };
    if let [part] = &read.contents[..]
        && let Some(text) = part.get("text").and_then(Value::as_str)
    {
        return ToolResult::text(text);
    }
    let block = |part: &Value| json!({ "type": "resource", "resource": part });
    result.content = read.contents.iter().map(block).collect();
    result.output = Value::Array(read.contents.clone());
    result
}

pub fn messages(filled: &PromptMessages, width: Option<usize>) -> Page {
    let mut page = Page::default();
    if let Some(description) = &filled.description {
        page.paragraph(Role::Dim, 0, description, width);
    }
    for message in &filled.messages {
        page.heading(message["role"].as_str().unwrap_or_default());
        let block = message.get("content").cloned().unwrap_or_default();
        let shown = ToolResult { content: vec![block], ..ToolResult::default() };
        page.append(content::page(&shown, false).indented(2));
    }
    page
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use insta::assert_snapshot;
    use serde_json::value::RawValue;

    use super::*;
    use crate::cli::json::offerings::PromptJson;
    use crate::model::{PromptArgument, ToolName};
    use crate::present::page::LineRenderer;

    fn raw_value() -> Arc<RawValue> {
        Arc::from(RawValue::from_string("{\"x\":1}".to_owned()).unwrap())
    }

    fn some_resource(uri: &str, description: &str) -> Resource {
        Resource {
            server: "files".to_owned(),
            uri: uri.to_owned(),
            name: "n".to_owned(),
            title: None,
            description: Some(description.to_owned()),
            mime_type: Some("text/markdown".to_owned()),
            size: Some(2048),
            warnings: Vec::new(),
            raw: raw_value(),
        }
    }

    fn shown(page: &Page) -> String {
        LineRenderer::default().page(page)
    }

    #[test]
    fn resources_fit_a_narrow_terminal() {
        let long = some_resource(
            "file:///srv/a/very/long/path/to/some/document/readme.md",
            "What the project is about. And more of it.",
        );
        let evil = some_resource("x:\u{202e}1", "\u{1b}[2J gone");
        let all = [&long, &evil];
        assert_snapshot!(shown(&resources(&all, Some(100))), @r"
        URI                                        SERVER  TYPE              SIZE  DESCRIPTION
        file:///srv/a/very/long/path/to/some/doc…  files   text/markdown  2.0 KiB  What the project is about
        x:⟨U+202E⟩1                                files   text/markdown  2.0 KiB  ␛[2J gone
        ");
        for width in [60, 40, 30] {
            let page = shown(&resources(&all, Some(width)));
            assert!(page.lines().all(|line| line.chars().count() <= width), "{width}:\n{page}");
        }
    }

    #[test]
    fn prompts_show_what_they_need() {
        let argument = |name: &str, required| PromptArgument {
            name: name.to_owned(),
            title: None,
            description: None,
            required,
        };
        let prompt = Prompt {
            name: ToolName::of("demo", "greet"),
            title: None,
            description: Some("Asks a model for a short greeting.".to_owned()),
            arguments: vec![argument("name", true), argument("language", false)],
            warnings: Vec::new(),
            raw: raw_value(),
        };
        assert_snapshot!(shown(&prompts(&[&prompt], Some(80))), @r"
        NAME        ARGUMENTS        DESCRIPTION
        demo-greet  name [language]  Asks a model for a short greeting
        ");
        assert_eq!(
            serde_json::to_value(PromptJson::from(&prompt)).unwrap()["raw"],
            json!({ "x": 1 })
        );
    }

    #[test]
    fn messages_stand_under_their_roles() {
        let filled = PromptMessages {
            name: ToolName::of("demo", "greet"),
            description: Some("A greeting".to_owned()),
            messages: vec![
                json!({ "role": "user", "content": { "type": "text", "text": "a\nb\u{1b}[2J" } }),
                json!({ "role": "assistant", "content":
                    { "type": "image", "mimeType": "image/png", "data": "AAAA" } }),
            ],
            meta: None,
            routing: None,
        };
        assert_snapshot!(shown(&messages(&filled, None)), @r"
        A greeting

        user
          a
          b␛[2J

        assistant
          [image/png 3 B, use --save]
        ");
    }
}
