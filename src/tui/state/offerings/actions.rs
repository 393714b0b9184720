//! Exporting an opened item: copy, command line, file.

use std::sync::Arc;

use super::{
    AppContext, OfferingKind, OfferingRequest, OfferingResponse, OfferingsView, Pane, content,
};
use crate::host::command;
use crate::model::JsonObject;
use crate::tui::event::AppEffect;
use crate::tui::event::offerings::OfferingsEffect;

impl OfferingsView {
    pub(super) fn copy_selection(&self, context: &mut AppContext) -> Vec<AppEffect> {
        let answer = self.open.as_ref().filter(|_| self.is_open()).and_then(|o| o.answer.as_ref());
        let text = match (context.focus, answer) {
            (Pane::Content, Some(OfferingResponse::Contents(parts))) => content::only_text(parts),
            _ => None,
        };
        let page = || (context.focus == Pane::Content).then(|| self.content.to_text());
        let name = || Some(self.chosen_item()?.name);
        let Some(text) = text.or_else(page).or_else(name) else { return Vec::new() };
        context.copy(if context.focus == Pane::Content { "content" } else { "name" }, text)
    }

    pub(super) fn copy_command(&self, context: &mut AppContext) -> Vec<AppEffect> {
        let Some(item) = self.chosen_item() else { return Vec::new() };
        let opened = self.open.as_ref().filter(|opened| opened.item == item);
        let line = match (opened.map(|opened| &opened.request), item.kind) {
            (Some(OfferingRequest::Read(uri)), _) => command::read(&item.server, uri),
            (Some(OfferingRequest::Get(name, arguments)), _) => command::prompt(name, arguments),
            (None, OfferingKind::Prompt) => command::prompt(&item.name, &JsonObject::new()),
            (None, _) => command::read(&item.server, &item.name),
        };
        let line = line + &context.command_end;
        context.copy("command", line)
    }

    pub(super) fn export_open(&self, context: &mut AppContext) -> Vec<AppEffect> {
        let answer = self.open.as_ref().filter(|_| self.is_open()).and_then(|o| o.answer.as_ref());
        let parts = match answer {
            Some(OfferingResponse::Contents(parts)) if !parts.is_empty() => Arc::clone(parts),
            Some(OfferingResponse::Messages(_, messages)) => {
                let text = crate::util::json::pretty(messages) + "\n";
                Arc::new(vec![serde_json::json!({ "text": text })])
            }
            _ => {
                context.show_error("nothing open to save");
                return Vec::new();
            }
        };
        vec![AppEffect::Offerings(OfferingsEffect::Save(parts))]
    }
}
