//! The opened item, or why it is not shown, as text.

use serde_json::{Value, json};

use crate::tui::prelude::*;
use crate::tui::views::offerings::tree::{
    Offering, OfferingKind, OfferingRow, OfferingServer, OfferingTree,
};
use crate::tui::views::offerings::{OfferingRequest, OfferingResponse, OpenOffering};
use crate::tui::views::result::documents;
use crate::util::json as json_text;

/// The text of the opened item, or why it could not be opened.
pub(super) fn open_content(opened: &OpenOffering, is_raw: bool) -> ScrollText {
    let mut page = ScrollText::default();
    match &opened.request {
        OfferingRequest::Read(uri) => page.fact("uri", uri),
        OfferingRequest::Get(name, arguments) => {
            page.fact("prompt", name);
            if !arguments.is_empty() {
                page.fact("arguments", json_text::short(arguments));
            }
        }
    }
    match &opened.answer {
        None => page.line(Role::Dim, "waiting for a response; Esc cancels"),
        Some(OfferingResponse::Failed(error)) => page.page(&present::messages::failure(error)),
        Some(OfferingResponse::Contents(parts)) if is_raw => raw(&mut page, parts.as_slice()),
        Some(OfferingResponse::Messages(_, messages)) if is_raw => raw(&mut page, messages),
        Some(OfferingResponse::Contents(parts)) => {
            if parts.is_empty() {
                page.line(Role::Dim, "empty");
            }
            for part in parts.iter() {
                part_of(&mut page, part, parts.len() > 1);
            }
        }
        Some(OfferingResponse::Messages(about, messages)) => {
            if let Some(about) = about {
                page.text(Role::Dim, about);
            }
            for message in messages {
                page.heading(text_of(message, "role").unwrap_or_default());
                documents::block(&mut page, message.get("content").unwrap_or(&Value::Null));
            }
        }
    }
    page
}

/// One part of a resource, under its address where there are several.
fn part_of(page: &mut ScrollText, part: &Value, is_one_of_several: bool) {
    if is_one_of_several {
        page.heading(text_of(part, "uri").unwrap_or_default());
    }
    match text_of(part, "text") {
        Some(text) => {
            let media_type = text_of(part, "mimeType").unwrap_or("text");
            page.fact("type", format!("{media_type}, {}", show_size(text.len() as u64)));
            documents::block(page, &json!({ "type": "text", "text": text }));
        }
        None => documents::block(page, &json!({ "type": "resource", "resource": part })),
    }
}

pub fn only_text(parts: &[Value]) -> Option<String> {
    let [part] = parts else { return None };
    text_of(part, "text").map(str::to_owned)
}

pub fn about(tree: &OfferingTree, row: &OfferingRow) -> ScrollText {
    let mut page = ScrollText::default();
    let count = |page: &mut ScrollText, server: &OfferingServer, kind: OfferingKind| {
        page.line(Role::Plain, format!("{:<20}{}", kind.title(), server.count(kind)));
    };
    match row {
        OfferingRow::Server(name) => {
            let Some(server) = tree.server(name) else { return page };
            for kind in OfferingKind::VARIANTS {
                count(&mut page, server, *kind);
            }
            if server.is_listing {
                page.line(Role::Dim, "loading…");
            }
            let Some(offerings) = &server.offerings else { return page };
            for error in &offerings.errors {
                page.page(&present::messages::failure(error));
            }
            for problem in &offerings.problems {
                page.line(Role::Warning, format!("! {problem}"));
            }
        }
        OfferingRow::Group(name, kind) => {
            tree.server(name).into_iter().for_each(|server| count(&mut page, server, *kind));
        }
        OfferingRow::Item(item) => {
            tree.offering(item).into_iter().for_each(|offering| about_item(&mut page, offering));
        }
    }
    page
}

fn about_item(page: &mut ScrollText, item: &Offering) {
    let hint = match item.kind {
        OfferingKind::Resource => {
            page.fact("uri", &item.id);
            "Press Enter to read it."
        }
        OfferingKind::Template => {
            page.fact("template", &item.id);
            "Press Enter to fill it in."
        }
        OfferingKind::Prompt => "Press Enter to fill it in and show its messages.",
    };
    page.fact("name", &item.name);
    if let Some(title) = &item.title {
        page.fact("title", title);
    }
    if let Some(description) = &item.description {
        page.text(Role::Plain, description);
    }
    for argument in &item.arguments {
        let mark = if argument.required { "* " } else { "  " };
        let about = argument.description.as_deref().or(argument.title.as_deref());
        page.push(vec![
            (Role::Key, mark.to_owned()),
            (Role::Name, argument.name.clone()),
            (Role::Plain, format!("  {}", about.unwrap_or_default())),
        ]);
    }
    if let Some(media_type) = &item.mime_type {
        page.fact("type", media_type);
    }
    if let Some(size) = item.size {
        page.fact("size", show_size(size));
    }
    for warning in &item.warnings {
        page.line(Role::Warning, format!("! {warning}"));
    }
    page.line(Role::Dim, hint);
}

fn raw(page: &mut ScrollText, values: &[Value]) {
    page.text(Role::Plain, &json_text::pretty(&values));
}

fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}
