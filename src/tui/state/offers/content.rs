//! What is open, and what is said of what is not, as text.

use serde_json::Value;

use super::tree::{ItemKind, Row, Tree};
use super::{Answer, Opened, Request};
use crate::model::{Fault, Prompt, Resource, ResourceTemplate};
use crate::tui::state::Page;
use crate::tui::theme::Meaning;
use crate::util::units::show_size;
use crate::util::{base64, json};

/// Larger text is shown as it is, even if it is JSON.
const INDENTED: usize = 512 * 1024;

/// What is open.
pub(super) fn opened(opened: &Opened, is_raw: bool) -> Page {
    let mut page = Page::default();
    match &opened.request {
        Request::Read(uri) => page.fact("uri", uri),
        Request::Get(name, arguments) => {
            page.fact("prompt", name);
            if !arguments.is_empty() {
                page.fact("arguments", json::short(arguments));
            }
        }
    }
    match &opened.answer {
        None => page.line(Meaning::Dim, "waiting for the answer; Esc gives it up"),
        Some(Answer::Failed(fault)) => failed(&mut page, fault),
        Some(Answer::Contents(parts)) if is_raw => raw(&mut page, parts.as_slice()),
        Some(Answer::Messages(_, messages)) if is_raw => raw(&mut page, messages),
        Some(Answer::Contents(parts)) => {
            if parts.is_empty() {
                page.line(Meaning::Dim, "it is empty");
            }
            for part in parts.iter() {
                if parts.len() > 1 {
                    page.heading(text_of(part, "uri").unwrap_or_default());
                }
                show_part(&mut page, part);
            }
        }
        Some(Answer::Messages(about, messages)) => {
            if let Some(about) = about {
                page.text(Meaning::Dim, about);
            }
            for message in messages {
                page.heading(text_of(message, "role").unwrap_or_default());
                show_block(&mut page, message.get("content").unwrap_or(&Value::Null));
            }
        }
    }
    page
}

/// The text of a resource that is nothing else.
pub(super) fn only_text(parts: &[Value]) -> Option<String> {
    let [part] = parts else { return None };
    text_of(part, "text").map(str::to_owned)
}

/// What is known of what is chosen.
pub(super) fn about(tree: &Tree, row: Row) -> Page {
    let mut page = Page::default();
    match row {
        Row::Server(at) => {
            let Some(server) = tree.servers().get(at) else { return page };
            for kind in ItemKind::ALL {
                page.line(Meaning::Plain, format!("{:<20}{}", kind.title(), server.count(kind)));
            }
            if server.is_asked {
                page.line(Meaning::Dim, "being asked");
            }
            for fault in server.lists.iter().flat_map(|lists| &lists.faults) {
                failed(&mut page, fault);
            }
            for problem in server.lists.iter().flat_map(|lists| &lists.problems) {
                page.line(Meaning::Doubt, format!("! {problem}"));
            }
        }
        Row::Group(at, kind) => {
            let Some(server) = tree.servers().get(at) else { return page };
            page.line(Meaning::Plain, format!("{:<20}{}", kind.title(), server.count(kind)));
        }
        Row::Item(server, ItemKind::Resource, at) => {
            if let Some(resource) = tree.resource_at(server, at) {
                about_resource(&mut page, resource);
            }
        }
        Row::Item(server, ItemKind::Template, at) => {
            if let Some(template) = tree.template_at(server, at) {
                about_template(&mut page, template);
            }
        }
        Row::Item(server, ItemKind::Prompt, at) => {
            if let Some(prompt) = tree.prompt_at(server, at) {
                about_prompt(&mut page, prompt);
            }
        }
    }
    page
}

fn about_resource(page: &mut Page, resource: &Resource) {
    page.fact("uri", &resource.uri);
    said(page, &resource.name, resource.title.as_deref(), resource.description.as_deref());
    if let Some(kind) = &resource.mime_type {
        page.fact("type", kind);
    }
    if let Some(size) = resource.size {
        page.fact("size", show_size(size));
    }
    warned(page, &resource.warnings);
    page.line(Meaning::Dim, "Enter reads it");
}

fn about_template(page: &mut Page, template: &ResourceTemplate) {
    page.fact("template", &template.template);
    said(page, &template.name, template.title.as_deref(), template.description.as_deref());
    if let Some(kind) = &template.mime_type {
        page.fact("type", kind);
    }
    warned(page, &template.warnings);
    page.line(Meaning::Dim, "Enter fills it in");
}

fn about_prompt(page: &mut Page, prompt: &Prompt) {
    said(page, prompt.name.tool(), prompt.title.as_deref(), prompt.description.as_deref());
    for argument in &prompt.arguments {
        let mark = if argument.required { "* " } else { "  " };
        let about = argument.description.as_deref().or(argument.title.as_deref());
        page.push(vec![
            (Meaning::Key, mark.to_owned()),
            (Meaning::Name, argument.name.clone()),
            (Meaning::Plain, format!("  {}", about.unwrap_or_default())),
        ]);
    }
    warned(page, &prompt.warnings);
    page.line(Meaning::Dim, "Enter fills it in and shows its messages");
}

fn said(page: &mut Page, name: &str, title: Option<&str>, description: Option<&str>) {
    page.fact("name", name);
    if let Some(title) = title {
        page.fact("title", title);
    }
    if let Some(description) = description {
        page.text(Meaning::Plain, description);
    }
}

fn warned(page: &mut Page, warnings: &[String]) {
    for warning in warnings {
        page.line(Meaning::Doubt, format!("! {warning}"));
    }
}

fn failed(page: &mut Page, fault: &Fault) {
    page.line(Meaning::Bad, format!("{}: {}", fault.kind().as_str(), fault.message()));
    for detail in fault.detail_lines() {
        page.line(Meaning::Plain, detail);
    }
    if let Some(hint) = fault.hint_text() {
        page.line(Meaning::Dim, format!("hint: {hint}"));
    }
}

fn raw(page: &mut Page, values: &[Value]) {
    page.text(Meaning::Plain, &json::pretty(&values));
}

/// A part of a resource.
fn show_part(page: &mut Page, part: &Value) {
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
        (None, None) => page.text(Meaning::Plain, &json::pretty(part)),
    }
}

/// A block of a message.
fn show_block(page: &mut Page, block: &Value) {
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
        _ => page.text(Meaning::Plain, &json::pretty(block)),
    }
}

fn show_text(page: &mut Page, text: &str) {
    let is_json = text.len() <= INDENTED && text.trim_start().starts_with(['{', '[']);
    match serde_json::from_str::<Value>(text).ok().filter(|_| is_json) {
        Some(value) => page.text(Meaning::Plain, &json::pretty(&value)),
        None => page.text(Meaning::Plain, text),
    }
}

fn binary(page: &mut Page, kind: Option<&str>, data: &str) {
    let size = show_size(base64::decoded_len(data));
    let kind = kind.unwrap_or("application/octet-stream");
    page.line(Meaning::Plain, format!("[{kind} {size}; E writes it to a file]"));
}

fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}
