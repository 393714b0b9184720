//! The opened item, or why it is not shown, as text.

use serde_json::Value;

use crate::model::{Error, Prompt, Resource, ResourceTemplate};
use crate::tui::theme::Role;
use crate::tui::views::offerings::tree::{OfferingKind, OfferingRow, OfferingTree};
use crate::tui::views::offerings::{OfferingRequest, OfferingResponse, OpenOffering};
use crate::tui::widgets::scroll_text::ScrollText;
use crate::util::units::show_size;
use crate::util::{base64, json};

/// Larger text is shown as it is, even if it is JSON.
const MAX_INDENTED_BYTES: usize = 512 * 1024;

/// The text of the opened item, or why it could not be opened.
pub(super) fn open_content(opened: &OpenOffering, is_raw: bool) -> ScrollText {
    let mut page = ScrollText::default();
    match &opened.request {
        OfferingRequest::Read(uri) => page.fact("uri", uri),
        OfferingRequest::Get(name, arguments) => {
            page.fact("prompt", name);
            if !arguments.is_empty() {
                page.fact("arguments", json::short(arguments));
            }
        }
    }
    match &opened.answer {
        None => page.line(Role::Dim, "waiting for a response; Esc cancels"),
        Some(OfferingResponse::Failed(error)) => failed(&mut page, error),
        Some(OfferingResponse::Contents(parts)) if is_raw => raw(&mut page, parts.as_slice()),
        Some(OfferingResponse::Messages(_, messages)) if is_raw => raw(&mut page, messages),
        Some(OfferingResponse::Contents(parts)) => {
            if parts.is_empty() {
                page.line(Role::Dim, "empty");
            }
            for part in parts.iter() {
                if parts.len() > 1 {
                    page.heading(text_of(part, "uri").unwrap_or_default());
                }
                show_part(&mut page, part);
            }
        }
        Some(OfferingResponse::Messages(about, messages)) => {
            if let Some(about) = about {
                page.text(Role::Dim, about);
            }
            for message in messages {
                page.heading(text_of(message, "role").unwrap_or_default());
                show_block(&mut page, message.get("content").unwrap_or(&Value::Null));
            }
        }
    }
    page
}

pub fn only_text(parts: &[Value]) -> Option<String> {
    let [part] = parts else { return None };
    text_of(part, "text").map(str::to_owned)
}

pub fn about(tree: &OfferingTree, row: OfferingRow) -> ScrollText {
    let mut page = ScrollText::default();
    match row {
        OfferingRow::Server(at) => {
            let Some(server) = tree.servers().get(at) else { return page };
            for kind in OfferingKind::ALL {
                page.line(Role::Plain, format!("{:<20}{}", kind.title(), server.count(kind)));
            }
            if server.is_listing {
                page.line(Role::Dim, "loading…");
            }
            for error in server.offerings.iter().flat_map(|lists| &lists.errors) {
                failed(&mut page, error);
            }
            for problem in server.offerings.iter().flat_map(|lists| &lists.problems) {
                page.line(Role::Warning, format!("! {problem}"));
            }
        }
        OfferingRow::Group(at, kind) => {
            let Some(server) = tree.servers().get(at) else { return page };
            page.line(Role::Plain, format!("{:<20}{}", kind.title(), server.count(kind)));
        }
        OfferingRow::Item(server, OfferingKind::Resource, at) => {
            if let Some(resource) = tree.resource_at(server, at) {
                about_resource(&mut page, resource);
            }
        }
        OfferingRow::Item(server, OfferingKind::Template, at) => {
            if let Some(template) = tree.template_at(server, at) {
                about_template(&mut page, template);
            }
        }
        OfferingRow::Item(server, OfferingKind::Prompt, at) => {
            if let Some(prompt) = tree.prompt_at(server, at) {
                about_prompt(&mut page, prompt);
            }
        }
    }
    page
}

fn about_resource(page: &mut ScrollText, resource: &Resource) {
    page.fact("uri", &resource.uri);
    push_description(
        page,
        &resource.name,
        resource.title.as_deref(),
        resource.description.as_deref(),
    );
    if let Some(kind) = &resource.mime_type {
        page.fact("type", kind);
    }
    if let Some(size) = resource.size {
        page.fact("size", show_size(size));
    }
    warned(page, &resource.warnings);
    page.line(Role::Dim, "Press Enter to read it.");
}

fn about_template(page: &mut ScrollText, template: &ResourceTemplate) {
    page.fact("template", &template.template);
    push_description(
        page,
        &template.name,
        template.title.as_deref(),
        template.description.as_deref(),
    );
    if let Some(kind) = &template.mime_type {
        page.fact("type", kind);
    }
    warned(page, &template.warnings);
    page.line(Role::Dim, "Press Enter to fill it in.");
}

fn about_prompt(page: &mut ScrollText, prompt: &Prompt) {
    push_description(
        page,
        prompt.name.tool(),
        prompt.title.as_deref(),
        prompt.description.as_deref(),
    );
    for argument in &prompt.arguments {
        let mark = if argument.required { "* " } else { "  " };
        let about = argument.description.as_deref().or(argument.title.as_deref());
        page.push(vec![
            (Role::Key, mark.to_owned()),
            (Role::Name, argument.name.clone()),
            (Role::Plain, format!("  {}", about.unwrap_or_default())),
        ]);
    }
    warned(page, &prompt.warnings);
    page.line(Role::Dim, "Press Enter to fill it in and show its messages.");
}

fn push_description(
    page: &mut ScrollText,
    name: &str,
    title: Option<&str>,
    description: Option<&str>,
) {
    page.fact("name", name);
    if let Some(title) = title {
        page.fact("title", title);
    }
    if let Some(description) = description {
        page.text(Role::Plain, description);
    }
}

fn warned(page: &mut ScrollText, warnings: &[String]) {
    for warning in warnings {
        page.line(Role::Warning, format!("! {warning}"));
    }
}

fn failed(page: &mut ScrollText, error: &Error) {
    page.line(Role::Error, format!("{}: {}", error.kind().as_str(), error.message()));
    for detail in error.details() {
        page.line(Role::Plain, detail);
    }
    if let Some(hint) = error.hint() {
        page.line(Role::Dim, format!("hint: {hint}"));
    }
}

fn raw(page: &mut ScrollText, values: &[Value]) {
    page.text(Role::Plain, &json::pretty(&values));
}

fn show_part(page: &mut ScrollText, part: &Value) {
    let kind = text_of(part, "mimeType");
    match (text_of(part, "text"), text_of(part, "blob")) {
        (Some(text), _) => {
            page.fact(
                "type",
                format!("{}, {}", kind.unwrap_or("text"), show_size(text.len() as u64)),
            );
            show_text(page, text);
        }
        (None, Some(blob)) => binary(page, kind, blob),
        (None, None) => page.text(Role::Plain, &json::pretty(part)),
    }
}

fn show_block(page: &mut ScrollText, block: &Value) {
    let field = |key: &str| text_of(block, key);
    match field("type") {
        Some("text") => show_text(page, field("text").unwrap_or_default()),
        Some("image" | "audio") => {
            binary(page, field("mimeType"), field("data").unwrap_or_default());
        }
        Some("resource") => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            page.fact("resource", text_of(resource, "uri").unwrap_or_default());
            show_part(page, resource);
        }
        // It is shown and never opened.
        Some("resource_link") => page.fact("link", field("uri").unwrap_or_default()),
        _ => page.text(Role::Plain, &json::pretty(block)),
    }
}

fn show_text(page: &mut ScrollText, text: &str) {
    let is_json = text.len() <= MAX_INDENTED_BYTES && text.trim_start().starts_with(['{', '[']);
    match serde_json::from_str::<Value>(text).ok().filter(|_| is_json) {
        Some(value) => page.text(Role::Plain, &json::pretty(&value)),
        None => page.text(Role::Plain, text),
    }
}

fn binary(page: &mut ScrollText, kind: Option<&str>, data: &str) {
    let size = show_size(base64::decoded_len(data));
    let kind = kind.unwrap_or("application/octet-stream");
    page.line(Role::Plain, format!("[{kind} {size}; E saves it]"));
}

fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}
