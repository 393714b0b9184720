//! Exporting an opened item: copy, command line, file.

use crate::host::command;
use crate::model::{HostEvent, ListKind, ListOwner, SubscriptionEvent};
use crate::tui::prelude::*;
use crate::tui::views::offerings::tasks;
use crate::tui::views::offerings::tree::{OfferingId, OfferingKind};
use crate::tui::views::offerings::{
    MAX_CHANGED, OfferingRequest, OfferingResponse, OfferingsView, OpenOffering, content,
};

impl OfferingsView {
    pub fn copy_selection(&self, context: &mut AppContext) {
        let text = match (context.focus, self.shown_answer()) {
            (Pane::Content, Some(OfferingResponse::Contents(parts))) => content::only_text(parts),
            _ => None,
        };
        let page = || (context.focus == Pane::Content).then(|| self.content.to_text());
        let name = || Some(self.chosen_item()?.name);
        let Some(text) = text.or_else(page).or_else(name) else { return };
        context.copy(if context.focus == Pane::Content { "content" } else { "name" }, text);
    }

    pub fn copy_command(&self, context: &mut AppContext) {
        let Some(item) = self.chosen_item() else { return };
        let opened = self.open.as_ref().filter(|opened| opened.item == item);
        let line = match (opened.map(|opened| &opened.request), item.kind) {
            (Some(OfferingRequest::Read(uri)), _) => command::read(&item.server, uri),
            (Some(OfferingRequest::Get(name, arguments)), _) => command::prompt(name, arguments),
            (None, OfferingKind::Prompt) => command::prompt(&item.name, &JsonObject::new()),
            (None, _) => command::read(&item.server, &item.name),
        };
        context.copy("command", line + &context.command_end);
    }

    pub fn export_open(&self, context: &mut AppContext) {
        let parts = match self.shown_answer() {
            Some(OfferingResponse::Contents(parts)) if !parts.is_empty() => Arc::clone(parts),
            Some(OfferingResponse::Messages(_, messages)) => {
                let text = crate::util::json::pretty(messages) + "\n";
                Arc::new(vec![serde_json::json!({ "text": text })])
            }
            _ => return context.show_error("nothing open to save"),
        };
        context.emit(tasks::save(parts));
    }
}

impl OfferingsView {
    /// The status of an item in two marks: whether it is watched, whether it changed.
    pub fn marks(&self, item: &OfferingId) -> (char, char) {
        let watched = match self.watched.get(item) {
            Some(true) => 'S',
            Some(false) => 's',
            None => ' ',
        };
        (watched, if self.changed.contains(item) { '!' } else { ' ' })
    }

    pub fn handle_host_event(&mut self, event: &HostEvent, context: &mut AppContext) {
        match event {
            HostEvent::ListChanged {
                owner: ListOwner::Server(server),
                list: ListKind::Resources | ListKind::Prompts,
            } if self.tree.changed(server, context.view == ViewId::Offerings) => {
                context.emit(tasks::list(server.clone()));
            }
            HostEvent::ResourceUpdated { server, uri } => {
                let resource = OfferingId::resource(server, uri);
                // Updates of watched resources are delivered without loss.
                if !self.watched.contains_key(&resource) {
                    self.updated(resource, context);
                }
            }
            _ => {}
        }
    }

    /// Something is to be said of a watched resource.
    pub fn changed(
        &mut self,
        resource: OfferingId,
        change: SubscriptionEvent,
        context: &mut AppContext,
    ) {
        let Some(agreed) = self.watched.get_mut(&resource) else { return };
        match change {
            SubscriptionEvent::Subscribed { refused } if refused.contains(&resource.name) => {
                self.watched.remove(&resource);
                let OfferingId { server, name, .. } = &resource;
                context.show_error(format!("{server} does not support watching {name}"));
                context.emit(AppEffect::Stop(tasks::watch_slot(&resource)));
            }
            SubscriptionEvent::Subscribed { .. } => {
                *agreed = true;
                context.show_status(format!("watching {}", resource.name));
            }
            SubscriptionEvent::ResourceUpdated { .. } => {
                context.show_status(format!("{} changed", resource.name));
                self.updated(resource, context);
            }
            SubscriptionEvent::Interrupted(error) => {
                *agreed = false;
                context.show_error(format!("{}; retrying", error.message()));
            }
            SubscriptionEvent::ListChanged(_) | SubscriptionEvent::Failed(_) => {}
        }
    }

    /// It is not watched any more. Without an error it was a person who ended it, and may have begun
    /// again since.
    pub fn unwatched(
        &mut self,
        resource: &OfferingId,
        error: Option<Error>,
        context: &mut AppContext,
    ) {
        if let Some(error) = error
            && self.watched.remove(resource).is_some()
        {
            let why = error.message();
            context.show_error(format!("{} is not watched: {why}", resource.name));
        }
    }

    /// A resource changed: it is marked, or read again when it is open.
    fn updated(&mut self, resource: OfferingId, context: &mut AppContext) {
        let is_read = |opened: &&OpenOffering| {
            opened.item.server == resource.server
                && opened.request == OfferingRequest::Read(resource.name.clone())
                && opened.answer.is_some()
        };
        let opened = self.open.as_ref().filter(is_read);
        let again = opened.map(|opened| (opened.item.clone(), opened.request.clone()));
        // A server cannot make the list grow without end.
        if self.changed.len() < MAX_CHANGED {
            self.changed.insert(resource);
        }
        let Some((item, request)) = again else { return };
        let before = std::mem::take(&mut self.content);
        self.request(item, request, context);
        // What was read stays on the screen until it was read again.
        self.content = before;
    }

    pub fn toggle_watch(&mut self, context: &mut AppContext) {
        let read = match self.shown().map(|opened| (&opened.item.server, &opened.request)) {
            Some((server, OfferingRequest::Read(uri))) => Some(OfferingId::resource(server, uri)),
            _ => None,
        };
        let chosen = || self.chosen_item().filter(|item| item.kind == OfferingKind::Resource);
        let Some(resource) = read.or_else(chosen) else {
            return context.show_error("only resources can be watched");
        };
        if self.watched.remove(&resource).is_some() {
            context.show_status(format!("stopped watching {}", resource.name));
            return context.emit(AppEffect::Stop(tasks::watch_slot(&resource)));
        }
        self.watched.insert(resource.clone(), false);
        context.emit(tasks::watch(resource));
    }
}
