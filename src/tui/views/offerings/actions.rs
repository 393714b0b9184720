//! Exporting an opened item: copy, command line, file.

use std::sync::Arc;

use crate::host::command;
use crate::model::{Error, HostEvent, JsonObject, ListKind, ListOwner, SubscriptionEvent};
use crate::tui::prelude::*;
use crate::tui::views::offerings::tasks::{self, WatchedResource};
use crate::tui::views::offerings::tree::{OfferingId, OfferingKind, OfferingTree};
use crate::tui::views::offerings::{
    MAX_CHANGED, OfferingRequest, OfferingResponse, OfferingsView, OpenOffering, content,
};

impl OfferingsView {
    pub fn copy_selection(&self, context: &mut AppContext) -> Effects {
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

    pub fn copy_command(&self, context: &mut AppContext) -> Effects {
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

    pub fn export_open(&self, context: &mut AppContext) -> Effects {
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
        vec![tasks::save(parts).into()]
    }
}

impl OfferingsView {
    /// The status of an item in two marks: whether it is watched, whether it changed.
    pub fn marks(&self, item: &OfferingId) -> (char, char) {
        let Some(watched_resource) = OfferingTree::resource(item) else { return (' ', ' ') };
        let watched = match self.watched.get(&watched_resource) {
            Some(true) => 'S',
            Some(false) => 's',
            None => ' ',
        };
        (watched, if self.changed.contains(&watched_resource) { '!' } else { ' ' })
    }

    pub fn handle_host_event(&mut self, event: &HostEvent, view: ViewId) -> Effects {
        match event {
            HostEvent::ListChanged {
                owner: ListOwner::Server(server),
                list: ListKind::Resources | ListKind::Prompts,
            } => {
                let ask = self.tree.changed(server, view == ViewId::Offerings);
                ask.then(|| tasks::list(server.clone()).into()).into_iter().collect()
            }
            HostEvent::ResourceUpdated { server, uri } => {
                let resource = WatchedResource { server: server.clone(), uri: uri.clone() };
                // Updates of watched resources are delivered without loss.
                if self.watched.contains_key(&resource) {
                    Vec::new()
                } else {
                    self.updated(resource)
                }
            }
            _ => Vec::new(),
        }
    }

    /// Something is to be said of a watched resource.
    pub fn changed(
        &mut self,
        resource: WatchedResource,
        change: SubscriptionEvent,
        context: &mut AppContext,
    ) -> Effects {
        let Some(agreed) = self.watched.get_mut(&resource) else { return Vec::new() };
        match change {
            SubscriptionEvent::Subscribed { refused } if refused.contains(&resource.uri) => {
                self.watched.remove(&resource);
                let WatchedResource { server, uri } = &resource;
                context.show_error(format!("{server} does not support watching {uri}"));
                return vec![AppEffect::Stop(resource.slot())];
            }
            SubscriptionEvent::Subscribed { .. } => {
                *agreed = true;
                context.show_status(format!("watching {}", resource.uri));
            }
            SubscriptionEvent::ResourceUpdated { .. } => {
                context.show_status(format!("{} changed", resource.uri));
                return self.updated(resource);
            }
            SubscriptionEvent::Interrupted(error) => {
                *agreed = false;
                context.show_error(format!("{}; retrying", error.message()));
            }
            SubscriptionEvent::ListChanged(_) | SubscriptionEvent::Failed(_) => {}
        }
        Vec::new()
    }

    /// It is not watched any more. Without an error it was a person who ended it, and may have begun
    /// again since.
    pub fn unwatched(
        &mut self,
        resource: &WatchedResource,
        error: Option<Error>,
        context: &mut AppContext,
    ) {
        if let Some(error) = error
            && self.watched.remove(resource).is_some()
        {
            let why = error.message();
            context.show_error(format!("{} is not watched: {why}", resource.uri));
        }
    }

    /// A resource changed: it is marked, or read again when it is open.
    fn updated(&mut self, resource: WatchedResource) -> Effects {
        let is_read = |opened: &&OpenOffering| {
            opened.item.server == resource.server
                && opened.request == OfferingRequest::Read(resource.uri.clone())
                && opened.answer.is_some()
        };
        let opened = self.open.as_ref().filter(is_read);
        let again = opened.map(|opened| (opened.item.clone(), opened.request.clone()));
        // A server cannot make the list grow without end.
        if self.changed.len() < MAX_CHANGED {
            self.changed.insert(resource);
        }
        let Some((item, request)) = again else { return Vec::new() };
        let before = std::mem::take(&mut self.content);
        let effect = self.request(item, request);
        // What was read stays on the screen until it was read again.
        self.content = before;
        vec![effect]
    }

    pub fn toggle_watch(&mut self, context: &mut AppContext) -> Effects {
        let opened = self.open.as_ref().filter(|_| self.is_open());
        let read = opened.and_then(|opened| match &opened.request {
            OfferingRequest::Read(uri) => {
                Some(WatchedResource { server: opened.item.server.clone(), uri: uri.clone() })
            }
            OfferingRequest::Get(..) => None,
        });
        let resource = || OfferingTree::resource(&self.chosen_item()?);
        let Some(resource) = read.or_else(resource) else {
            context.show_error("only resources can be watched");
            return Vec::new();
        };
        if self.watched.remove(&resource).is_some() {
            context.show_status(format!("stopped watching {}", resource.uri));
            return vec![AppEffect::Stop(resource.slot())];
        }
        self.watched.insert(resource.clone(), false);
        vec![tasks::watch(resource).into()]
    }
}
