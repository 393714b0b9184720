//! The resources view: resources, templates and prompts of servers.

pub mod draw;
pub mod form;
pub mod tasks;
#[cfg(test)]
pub mod tests;
pub mod tree;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::host::command;
use crate::model::{HostEvent, ListKind, ListOwner, SubscriptionEvent};
use crate::tui::keys::KeyPress::{Char, Enter, Right};
use crate::tui::prelude::*;
use crate::tui::views::form::FORM;
use crate::tui::views::offerings::form::OfferingForm;
use crate::tui::views::offerings::tree::{
    OfferingId, OfferingKind, OfferingRow, OfferingTree, ServerOfferings,
};

/// How many resources are marked as changed.
const MAX_CHANGED: usize = 10_000;

/// The resources view: what servers offer beside tools.
#[derive(Debug, Default)]
pub struct OfferingsView {
    /// Everything, by server.
    pub tree: OfferingTree,
    pub list: ListCursor,
    pub filter: ListFilter,
    pub asking: Option<OfferingForm>,
    pub content: ScrollText,
    pub is_raw: bool,
    /// The resources that are watched; `true` once their servers agreed.
    watched: BTreeMap<OfferingId, bool>,
    /// Resources that changed and were not read since.
    changed: BTreeSet<OfferingId>,
    open: Option<OpenOffering>,
    next: u64,
    last_arguments: HashMap<OfferingId, JsonObject>,
    was_listed: bool,
}

#[derive(Debug)]
pub struct OpenOffering {
    item: OfferingId,
    ticket: u64,
    request: OfferingRequest,
    answer: Option<OfferingResponse>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum OfferingRequest {
    /// A resource, by its address.
    Read(String),
    /// A prompt, by its full name.
    Get(String, JsonObject),
}

#[derive(Debug)]
pub enum OfferingResponse {
    Contents(Arc<Vec<Value>>),
    Messages(Option<String>, Vec<Value>),
    Failed(Error),
}

impl View for OfferingsView {
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool {
        if self.is_asking(context.focus) {
            return self.act_asking(action, context);
        }
        match action {
            Action::Open => self.open(context),
            Action::Fill => self.fill(context),
            Action::Refresh => {
                context.show_status("reloading from all servers…");
                self.relist_all(context);
            }
            Action::Subscribe => self.toggle_watch(context),
            Action::ChangeFormat => {
                self.is_raw = !self.is_raw;
                self.show();
            }
            Action::Copy => self.copy_selection(context),
            Action::CopyCommand => self.copy_command(context),
            Action::Export => self.export_open(context),
            Action::Back if self.is_reading() => {
                self.open = None;
                self.show();
                context.show_status("request cancelled");
                context.emit(AppEffect::Stop(tasks::REQUEST.to_owned()));
            }
            _ => return false,
        }
        true
    }

    fn key_contexts(&self, focus: Pane) -> Vec<KeyContext> {
        if self.is_asking(focus) {
            return vec![&OFFERING_FORM, &FORM];
        }
        vec![&OFFERINGS, &PANE, &ANYWHERE]
    }

    fn scroll(&mut self, pane: Pane, by: isize, _context: &mut AppContext) {
        match pane {
            Pane::OfferingList => self.step(by),
            _ => self.content.scroll(by),
        }
    }

    fn enter(&mut self, context: &mut AppContext) {
        if !std::mem::replace(&mut self.was_listed, true) {
            return context.emit(tasks::list_all());
        }
        self.tree.stale().into_iter().for_each(|server| context.emit(tasks::list(server)));
    }

    fn form(&self, focus: Pane) -> Option<&SchemaForm> {
        let asking = self.asking.as_ref().filter(|_| self.is_asking(focus))?;
        Some(&asking.form)
    }

    fn form_mut(&mut self, focus: Pane) -> Option<&mut SchemaForm> {
        let is_asking = self.is_asking(focus);
        let asking = self.asking.as_mut().filter(|_| is_asking)?;
        Some(&mut asking.form)
    }

    fn filter(&self) -> Option<&ListFilter> {
        Some(&self.filter)
    }

    fn filter_mut(&mut self) -> Option<&mut ListFilter> {
        Some(&mut self.filter)
    }

    fn is_list_empty(&self) -> bool {
        self.chosen().is_none()
    }

    fn on_text_changed(&mut self, context: &mut AppContext) {
        if self.is_asking(context.focus)
            && let Some(asking) = &mut self.asking
        {
            asking.form.on_text_changed();
            return asking.complete(context);
        }
        self.refilter();
    }
}

impl OfferingsView {
    pub fn chosen(&self) -> Option<&OfferingRow> {
        self.tree.rows.get(self.list.chosen())
    }

    pub fn is_reading(&self) -> bool {
        self.open.as_ref().is_some_and(|opened| opened.answer.is_none())
    }

    /// What was opened, while it is chosen.
    pub fn shown(&self) -> Option<&OpenOffering> {
        let chosen = self.chosen_item()?;
        self.open.as_ref().filter(|opened| opened.item == chosen)
    }

    fn shown_answer(&self) -> Option<&OfferingResponse> {
        self.shown()?.answer.as_ref()
    }

    /// Takes in what a server offers.
    pub fn listed(&mut self, server: String, offerings: ServerOfferings, context: &mut AppContext) {
        let chosen = self.chosen().cloned();
        let is_stale = self.tree.set_offerings(&server, offerings);
        self.arrange(chosen);
        if is_stale {
            context.emit(tasks::list(server));
        }
    }

    pub fn set_response(&mut self, ticket: u64, response: OfferingResponse) {
        let Some(opened) = self.open.as_mut().filter(|opened| opened.ticket == ticket) else {
            return;
        };
        if let (OfferingRequest::Read(uri), OfferingResponse::Contents(_)) =
            (&opened.request, &response)
        {
            self.changed.remove(&OfferingId::resource(&opened.item.server, uri));
        }
        opened.answer = Some(response);
        self.show();
    }

    fn is_asking(&self, focus: Pane) -> bool {
        self.asking.is_some() && focus == Pane::Content
    }

    fn chosen_item(&self) -> Option<OfferingId> {
        match self.chosen()? {
            OfferingRow::Item(item) => Some(item.clone()),
            _ => None,
        }
    }

    fn step(&mut self, by: isize) {
        self.list.step(by, self.tree.rows.len());
        self.asking = None;
        self.show_from_top();
    }

    fn refilter(&mut self) {
        let chosen = self.chosen().cloned();
        self.tree.filter(self.filter.text());
        if self.filter.text().is_empty() {
            // What was chosen stays so.
            return self.arrange(chosen);
        }
        // The first thing that can be opened.
        let first = self.tree.rows.iter().position(|row| matches!(row, OfferingRow::Item(_)));
        self.list.choose(first.unwrap_or(0), self.tree.rows.len());
        self.show_from_top();
    }

    /// Restores the selection after a change.
    fn arrange(&mut self, chosen: Option<OfferingRow>) {
        let rows = &self.tree.rows;
        let again = chosen.and_then(|chosen| rows.iter().position(|row| *row == chosen));
        self.list.choose(again.unwrap_or(self.list.chosen()), rows.len());
        self.show();
    }

    fn open(&mut self, context: &mut AppContext) {
        match self.chosen().cloned() {
            Some(OfferingRow::Item(_)) => self.fill(context),
            Some(row) => self.tree.fold(row),
            None => {}
        }
    }

    /// Opens the selected item, or asks for its arguments first.
    fn fill(&mut self, context: &mut AppContext) {
        let Some(item) = self.chosen_item() else { return };
        context.focus = Pane::Content;
        let Some(mut asking) = OfferingForm::of(&self.tree, &item, self.last_arguments.get(&item))
        else {
            let request = match item.kind {
                OfferingKind::Resource => OfferingRequest::Read(item.name.clone()),
                _ => OfferingRequest::Get(item.name.clone(), JsonObject::new()),
            };
            return self.request(item, request, context);
        };
        asking.complete(context);
        self.asking = Some(asking);
    }

    fn request(&mut self, item: OfferingId, request: OfferingRequest, context: &mut AppContext) {
        self.next += 1;
        context.emit(tasks::open(self.next, item.server.clone(), request.clone()));
        self.open = Some(OpenOffering { item, ticket: self.next, request, answer: None });
        self.show_from_top();
    }

    fn act_asking(&mut self, action: Action, context: &mut AppContext) -> bool {
        let Some(asking) = &mut self.asking else { return false };
        match action {
            Action::Run => self.run(context),
            Action::Back => {
                self.asking = None;
                context.focus = Pane::OfferingList;
            }
            Action::NextChoice if asking.take_suggestion() => {}
            other if asking.form.act(other) => asking.complete(context),
            _ => return false,
        }
        true
    }

    fn run(&mut self, context: &mut AppContext) {
        let Some(mut asking) = self.asking.take() else { return };
        if !asking.form.is_ready() {
            self.asking = Some(asking);
            return;
        }
        let arguments = asking.text_arguments();
        let request = match asking.address() {
            None => OfferingRequest::Get(asking.item.name.clone(), arguments.clone()),
            Some(address) => OfferingRequest::Read(address),
        };
        self.last_arguments.insert(asking.item.clone(), arguments);
        self.request(asking.item, request, context);
    }

    /// The servers are those of another host now: nothing is watched there, and what was listed is
    /// asked for anew.
    pub fn forget_servers(&mut self, context: &mut AppContext) {
        self.watched.clear();
        if self.was_listed {
            self.relist_all(context);
        }
    }

    fn relist_all(&mut self, context: &mut AppContext) {
        self.tree.ask_all();
        context.emit(tasks::list_all());
    }

    fn show_from_top(&mut self) {
        self.content = ScrollText::default();
        self.show();
    }

    /// Writes down what the other pane shows.
    fn show(&mut self) {
        let page = match (self.shown(), self.chosen()) {
            (Some(opened), _) => draw::open_content(opened, self.is_raw),
            (None, Some(row)) => draw::about(&self.tree, row),
            (None, None) => ScrollText::default(),
        };
        self.content.replace(page);
    }
}

#[rustfmt::skip]
pub const OFFERINGS: KeyTable = KeyTable { name: "offers", title: "Resources and prompts", rows: &[
    on_row(&[Enter], Action::Open, "open", "read, fill in or fold"),
    row(&[Char('/')], Action::Filter, "filter", "filter by name: words !word"),
    on_row(&[Char('S')], Action::Subscribe, "watch", "watch or unwatch the resource"),
    on_row(&[Char('t')], Action::ChangeFormat, "text/raw", "switch between text and raw"),
    on_row(&[Char('Y')], Action::CopyCommand, "copy as command", "copy as a command"),
    on_row(&[Char('E')], Action::Export, "write", "save to a file"),
    on_row(&[Char('e')], Action::Fill, "", "edit the arguments"),
    row(&[Char('u')], Action::Refresh, "", "reload from all servers"),
] };

#[rustfmt::skip]
pub const OFFERING_FORM: KeyTable = KeyTable { name: "asking", title: "Template and prompt arguments", rows: &[
    row(&[Right], Action::NextChoice, "suggestion", "accept the next suggestion, or cursor right"),
] };

impl OfferingsView {
    pub fn copy_selection(&self, context: &mut AppContext) {
        let text = match (context.focus, self.shown_answer()) {
            (Pane::Content, Some(OfferingResponse::Contents(parts))) => draw::only_text(parts),
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
