//! Results, failures and dry runs as text.

use serde_json::{Value, json};

use super::super::{Call, Document, Outcome};
use crate::host::content::{json_output, kind, media_type, says_nothing_else, size};
use crate::host::policy::Decision;
use crate::host::request::{CallOutcome, Rehearsal};
use crate::model::{Fault, FaultKind, ToolResult};
use crate::tui::theme::Meaning;
use crate::util::units::{show_duration, show_size};
use crate::util::{base64, json as json_text};

/// Everything about a call that ended.
pub(super) fn text(call: &Call, outcome: &Outcome) -> Document {
    let mut page = Document::default();
    match outcome {
        Ok(outcome) => ended(&mut page, outcome),
        Err(fault) => failed(&mut page, fault),
    }
    told(&mut page, call);
    if let Ok(outcome) = outcome {
        account(&mut page, outcome);
    }
    page
}

fn ended(page: &mut Document, outcome: &CallOutcome) {
    if let Some(fault) = outcome.fault() {
        failed(page, fault);
    }
    let Ok(result) = &outcome.result else { return };
    for warning in &result.warnings {
        page.line(Meaning::Doubt, &format!("! {warning}"));
    }
    let structured = result.structured.as_ref().or_else(|| json_output(&result.output));
    let repeats = structured.is_some_and(|value| says_nothing_else(&result.content, value));
    if !repeats {
        for content in &result.content {
            block(page, content);
        }
        if let (Value::String(text), true) = (&result.output, result.content.is_empty()) {
            page.text(Meaning::Plain, text);
        }
    }
    if let Some(value) = structured {
        if !page.is_empty() {
            page.gap();
            page.line(Meaning::Title, "structured content");
        }
        page.text(Meaning::Plain, &json_text::pretty(value));
    }
    if page.is_empty() {
        page.line(Meaning::Dim, "it gave nothing");
    }
    if outcome.definition.output_schema.is_some() {
        page.gap();
        let broken = result.fault.as_ref().is_some_and(|f| f.kind() == FaultKind::Protocol);
        let (meaning, said) = match (broken, &result.structured) {
            (true, _) => (Meaning::Bad, "output schema: it does not fit"),
            (false, Some(_)) if result.success => (Meaning::Good, "output schema: it fits"),
            (false, _) => (Meaning::Dim, "output schema: there is nothing to check"),
        };
        page.line(meaning, said);
    }
}

/// One block, in words for what cannot be shown.
fn block(page: &mut Document, block: &Value) {
    let of = |holder: &Value, field: &str| {
        let size = base64::decoded_len(holder[field].as_str().unwrap_or_default());
        format!("{} {}, E saves it", media_type(holder), show_size(size))
    };
    match kind(block) {
        "text" => page.text(Meaning::Plain, block["text"].as_str().unwrap_or_default()),
        word @ ("image" | "audio") => {
            page.line(Meaning::Dim, &format!("[{word} {}]", of(block, "data")));
        }
        "resource" => {
            let resource = &block["resource"];
            let uri = resource["uri"].as_str().unwrap_or_default();
            if let Some(text) = resource["text"].as_str() {
                page.line(Meaning::Dim, &format!("[resource {uri}]"));
                page.text(Meaning::Plain, text);
            } else {
                let said = format!("[resource {uri}: {}]", of(resource, "blob"));
                page.line(Meaning::Dim, &said);
            }
        }
        "resource_link" => {
            let name = block["title"].as_str().or_else(|| block["name"].as_str());
            let uri = block["uri"].as_str().unwrap_or_default();
            let said = format!("[link] {} {uri}", name.unwrap_or_default());
            page.line(Meaning::Dim, &said);
        }
        _ => {
            page.line(Meaning::Dim, "[unknown content]");
            page.text(Meaning::Plain, &json_text::pretty(block));
        }
    }
}

/// What went wrong, and what to do about it.
fn failed(page: &mut Document, fault: &Fault) {
    let kind = fault.kind().as_str();
    page.text(Meaning::Bad, &format!("{kind}: {}", fault.message()));
    for said in fault.detail_lines() {
        page.text(Meaning::Plain, said);
    }
    if let Some(hint) = fault.hint_text() {
        page.text(Meaning::Dim, &format!("hint: {hint}"));
    }
}

/// What was told while it ran.
fn told(page: &mut Document, call: &Call) {
    if !call.live.nested.is_empty() {
        page.gap();
        page.line(Meaning::Title, "calls it made");
        for nested in &call.live.nested {
            let indent = "  ".repeat(nested.depth);
            let (meaning, said) = match nested.ended {
                Some((true, took)) => (Meaning::Plain, format!("ok {}", show_duration(took))),
                Some((false, took)) => (Meaning::Bad, format!("failed {}", show_duration(took))),
                None => (Meaning::Dim, "no word of its end".to_owned()),
            };
            page.line(meaning, &format!("{indent}{}  {said}", nested.tool));
        }
    }
    if !call.live.log.is_empty() {
        page.gap();
        page.line(Meaning::Title, "logged meanwhile");
        for (level, said) in &call.live.log {
            page.text(Meaning::Dim, &format!("{level}: {said}"));
        }
    }
}

/// How it went.
fn account(page: &mut Document, outcome: &CallOutcome) {
    let metadata = &outcome.metadata;
    page.gap();
    page.fact("call", &metadata.call_id.0);
    let mut took = format!("took {}", show_duration(metadata.duration));
    if let Some(connect) = metadata.connect {
        took = format!("{took}, connecting {}", show_duration(connect));
    }
    if !metadata.waited.is_zero() {
        took = format!("{took}, of that {} for a person", show_duration(metadata.waited));
    }
    page.fact("time", &took);
    page.fact("attempts", &metadata.attempts.to_string());
    if let Ok(result) = &outcome.result {
        page.fact("size", &show_size(size(result)));
    }
    if let Some(protocol) = &metadata.protocol {
        page.fact("protocol", protocol);
    }
    if let Some(routing) = &metadata.routing {
        let others = match routing.others.as_slice() {
            [] => String::new(),
            others => format!(", before {}", others.join(", ")),
        };
        page.fact("server", &format!("{}{others}", routing.server));
        for skipped in &routing.skipped {
            page.fact("skipped", &format!("{}: {}", skipped.server, skipped.reason));
        }
    }
}

/// Everything that came, in the shape of an MCP result.
pub(super) fn whole(result: &ToolResult) -> Value {
    let mut all = json!({ "content": result.content, "isError": !result.success });
    if let Some(all) = all.as_object_mut() {
        let more = [("structuredContent", &result.structured), ("_meta", &result.meta)];
        for (key, value) in more.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)))
        {
            all.insert(key.to_owned(), value.clone());
        }
    }
    all
}

/// The same as text.
pub(super) fn raw(result: &ToolResult) -> Document {
    let mut page = Document::default();
    page.text(Meaning::Plain, &json_text::pretty(&whole(result)));
    page
}

/// What a call would send.
pub(super) fn rehearsal(rehearsal: &Result<Rehearsal, Fault>) -> Document {
    let mut page = Document::default();
    match rehearsal {
        Ok(rehearsal) => {
            page.line(Meaning::Good, "nothing was sent; a call would send this:");
            page.text(Meaning::Title, &rehearsal.preview.summary);
            let (meaning, said) = match &rehearsal.decision {
                Decision::Allow(_) => (Meaning::Dim, "nobody is asked first".to_owned()),
                Decision::Ask(why) => (Meaning::Doubt, format!("a person is asked first: {why}")),
                Decision::Deny(why) => (Meaning::Bad, format!("it is refused by {why}")),
            };
            page.line(meaning, &said);
            for warning in &rehearsal.warnings {
                page.text(Meaning::Doubt, &format!("! {warning}"));
            }
            page.text(Meaning::Plain, &json_text::pretty(&rehearsal.preview.request));
        }
        Err(fault) => {
            page.line(Meaning::Bad, "nothing was sent; such a call is not possible:");
            failed(&mut page, fault);
        }
    }
    page
}
