//! What a person takes along: a copy, a command, a file.

use std::sync::Arc;

use super::{Answer, ItemKind, Offers, Pane, Request, Shell, content};
use crate::host::command;
use crate::model::JsonObject;
use crate::tui::event::Effect;
use crate::tui::event::offers::Wish;

impl Offers {
    pub(super) fn copied(&self, shell: &mut Shell) -> Vec<Effect> {
        let answer =
            self.opened.as_ref().filter(|_| self.is_open()).and_then(|o| o.answer.as_ref());
        let text = match (shell.focus, answer) {
            (Pane::Content, Some(Answer::Contents(parts))) => content::only_text(parts),
            _ => None,
        };
        let page = || (shell.focus == Pane::Content).then(|| self.page.to_text());
        let name = || Some(self.chosen_item()?.name);
        let Some(text) = text.or_else(page).or_else(name) else { return Vec::new() };
        shell.say("copied");
        vec![Effect::Copy(text)]
    }

    pub(super) fn command_copied(&self, shell: &mut Shell) -> Vec<Effect> {
        let Some(item) = self.chosen_item() else { return Vec::new() };
        let opened = self.opened.as_ref().filter(|opened| opened.item == item);
        let line = match (opened.map(|opened| &opened.request), item.kind) {
            (Some(Request::Read(uri)), _) => command::read(&item.server, uri),
            (Some(Request::Get(name, arguments)), _) => command::prompt(name, arguments),
            (None, ItemKind::Prompt) => command::prompt(&item.name, &JsonObject::new()),
            (None, _) => command::read(&item.server, &item.name),
        };
        shell.say("copied as a command");
        vec![Effect::Copy(line)]
    }

    pub(super) fn exported(&self, shell: &mut Shell) -> Vec<Effect> {
        let answer =
            self.opened.as_ref().filter(|_| self.is_open()).and_then(|o| o.answer.as_ref());
        let parts = match answer {
            Some(Answer::Contents(parts)) if !parts.is_empty() => Arc::clone(parts),
            Some(Answer::Messages(_, messages)) => {
                let text = crate::util::json::pretty(messages) + "\n";
                Arc::new(vec![serde_json::json!({ "text": text })])
            }
            _ => {
                shell.say_bad("open something first: what is open is written");
                return Vec::new();
            }
        };
        vec![Effect::Offers(Wish::Save(parts))]
    }
}
