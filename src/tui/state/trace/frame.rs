//! One frame, or a request with its response, formatted for reading.

use serde_json::Value;

use super::item::{TraceContent, TraceItem};
use crate::model::traffic::TrafficKind;
use crate::tui::state::json_lines;
use crate::tui::state::{ScrollText, TextLimits};
use crate::tui::theme::StyleRole;
use crate::util::units::show_size;

const MESSAGE_LIMITS: TextLimits = TextLimits {
    lines: 5_000,
    bytes: usize::MAX,
    notice: "… more than 5,000 lines; y copies the frame",
};
const PAGE_LIMITS: TextLimits = TextLimits { lines: usize::MAX, bytes: usize::MAX, notice: "" };

/// Which messages of a request and its response are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameScope {
    #[default]
    Chosen,
    /// The request and its response.
    Both,
    Request,
    /// Only the response of the pair.
    Answer,
}

impl FrameScope {
    /// The next way to show a pair of which the chosen frame is the request or not.
    #[must_use]
    pub fn next(self, is_request: bool) -> Self {
        match (self, is_request) {
            (Self::Chosen, true) | (Self::Request, _) => Self::Answer,
            (Self::Chosen, false) | (Self::Both, _) => Self::Request,
            (Self::Answer, _) => Self::Both,
        }
    }
}

/// The text of these frames, one after the other, with a heading each where there are several.
pub(super) fn frame_text(items: &[&TraceItem]) -> ScrollText {
    let mut page = ScrollText::with_limits(PAGE_LIMITS);
    for item in items {
        if items.len() > 1 {
            let heading = if item.is_request() { "request" } else { "response" };
            page.line(StyleRole::Title, heading);
        }
        add(&mut page, item);
    }
    page
}

fn add(page: &mut ScrollText, item: &TraceItem) {
    if let Some(call) = &item.call {
        page.line(StyleRole::Dim, format!("call {}", call.0));
    }
    if item.is_cut {
        let (kept, size) = (item.bytes().len() as u64, item.size as u64);
        let said = format!("the first {} of {}", show_size(kept), show_size(size));
        page.line(StyleRole::Dim, said);
    }
    match &item.what {
        TraceContent::Wire(TrafficKind::Message { bytes, .. }) => message(page, bytes, item.is_cut),
        TraceContent::Wire(TrafficKind::HttpHead { line, headers, .. }) => {
            body(page, line);
            for (name, value) in headers {
                body(page, &format!("{name}: {value}"));
            }
        }
        TraceContent::Wire(
            TrafficKind::Stderr(text)
            | TrafficKind::NonJsonLine(text)
            | TrafficKind::Opened(text)
            | TrafficKind::Closed(text),
        )
        | TraceContent::Log { text, .. } => body(page, text),
    }
}

fn message(page: &mut ScrollText, bytes: &[u8], is_cut: bool) {
    let parsed = (!is_cut).then(|| serde_json::from_slice::<Value>(bytes));
    match parsed {
        Some(Ok(value)) => {
            let mut own = ScrollText::with_limits(MESSAGE_LIMITS);
            json_lines::push(&mut own, &value);
            return page.append(own);
        }
        Some(Err(why)) => page.line(StyleRole::Dim, format!("not JSON: {why}")),
        None => {}
    }
    body(page, &String::from_utf8_lossy(bytes));
}

fn body(page: &mut ScrollText, text: &str) {
    let mut own = ScrollText::with_limits(MESSAGE_LIMITS);
    own.text(StyleRole::Plain, text);
    page.append(own);
}
