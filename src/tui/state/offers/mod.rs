//! What servers offer beside tools: resources, templates of addresses, prompts.
//!
//! Owns: the tree of them, what is open, which resources are watched. Never does: ask a server, or
//! open a link.

mod asking;
mod content;
mod taking;
#[cfg(test)]
pub(in crate::tui) mod tests;
mod tree;
mod watching;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::list::steps;
use super::{Form, Line, List, Page, Pane, Shell, Stage, View};
use crate::model::{Fault, JsonObject};
use crate::tui::event::Effect;
use crate::tui::event::offers::{Followed, News, Ticket, Wish};
use crate::tui::keys::{Action, When};

pub use asking::{Asking, Suggestions};
pub use tree::{Item, ItemKind, Row as OfferRow, Server as OfferServer, Tree};

/// How many resources are marked as changed.
const CHANGED: usize = 10_000;

/// What servers offer beside tools.
#[derive(Debug, Default)]
pub struct Offers {
    /// Everything, by server.
    pub tree: Tree,
    /// The chosen row.
    pub list: List,
    /// What is searched for.
    pub filter: Line,
    /// Whether that is being written.
    pub is_filtering: bool,
    /// What is being filled in.
    pub asking: Option<Asking>,
    /// What the other pane shows.
    pub page: Page,
    /// Whether it is shown as it came.
    pub is_raw: bool,
    /// The resources that are watched; `true` once their servers agreed.
    followed: BTreeMap<Followed, bool>,
    /// Resources that changed and were not read since.
    changed: BTreeSet<Followed>,
    opened: Option<Opened>,
    next: u64,
    /// What was filled in last, by item.
    earlier: HashMap<Item, JsonObject>,
    was_listed: bool,
}

/// What is open.
#[derive(Debug)]
struct Opened {
    item: Item,
    ticket: Ticket,
    /// What it was read by.
    request: Request,
    answer: Option<Answer>,
}

/// How something is opened.
#[derive(Debug, Clone, PartialEq)]
enum Request {
    /// A resource, by its address.
    Read(String),
    /// A prompt, by its full name.
    Get(String, JsonObject),
}

#[derive(Debug)]
enum Answer {
    Contents(Arc<Vec<Value>>),
    Messages(Option<String>, Vec<Value>),
    Failed(Fault),
}

impl Stage for Offers {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        if self.is_asking(shell.focus) {
            return self.act_asking(action, shell);
        }
        if let Some(by) = steps(action)
            && (shell.focus == Pane::Offered || self.is_filtering)
        {
            self.step(by);
            return Some(Vec::new());
        }
        match action {
            Action::Filter => {
                shell.focus = Pane::Offered;
                self.is_filtering = true;
            }
            Action::Open => return Some(self.open(shell)),
            Action::Fill => return Some(self.fill(shell)),
            Action::Refresh => return Some(self.listed_again(shell)),
            Action::Subscribe => return Some(self.subscribe(shell)),
            Action::Turn => {
                self.is_raw = !self.is_raw;
                self.show();
            }
            Action::Copy => return Some(self.copied(shell)),
            Action::CopyCommand => return Some(self.command_copied(shell)),
            Action::Export => return Some(self.exported(shell)),
            Action::Back => return self.back(shell),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn places(&self, focus: Pane) -> Vec<When> {
        if self.is_asking(focus) {
            return vec![When::Asking, When::Form];
        }
        if self.is_filtering {
            return vec![When::Text];
        }
        vec![When::Offers, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        match focus {
            Pane::Offered => self.step(by),
            _ => self.page.scroll(by),
        }
    }

    fn enter(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        if !std::mem::replace(&mut self.was_listed, true) {
            return vec![Effect::Offers(Wish::ListAll)];
        }
        self.tree.stale().into_iter().map(|server| Effect::Offers(Wish::List(server))).collect()
    }

    fn form(&self, focus: Pane) -> Option<&Form> {
        let asking = self.asking.as_ref().filter(|_| self.is_asking(focus))?;
        Some(&asking.form)
    }

    fn form_mut(&mut self, focus: Pane) -> Option<&mut Form> {
        let is_asking = self.is_asking(focus);
        let asking = self.asking.as_mut().filter(|_| is_asking)?;
        Some(&mut asking.form)
    }

    fn line(&mut self, focus: Pane) -> Option<&mut Line> {
        if self.is_asking(focus) {
            return self.asking.as_mut()?.form.line();
        }
        self.is_filtering.then_some(&mut self.filter)
    }

    fn rewritten(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if self.is_asking(shell.focus)
            && let Some(asking) = &mut self.asking
        {
            asking.form.rewritten();
            return asking.complete();
        }
        self.refilter();
        Vec::new()
    }
}

impl Offers {
    /// What is chosen.
    pub fn chosen(&self) -> Option<OfferRow> {
        self.tree.rows().get(self.list.chosen()).copied()
    }

    /// Whether something is being read.
    pub fn is_reading(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.answer.is_none())
    }

    /// Whether what is open is what is chosen.
    pub fn is_open(&self) -> bool {
        let chosen = self.chosen_item();
        self.opened.as_ref().is_some_and(|opened| Some(&opened.item) == chosen.as_ref())
    }

    /// Takes in what came of a wish.
    pub fn hear(&mut self, news: News, shell: &mut Shell) -> Vec<Effect> {
        match news {
            News::Servers(servers) => self.tree.begin(servers),
            News::Listed(server, lists) => {
                let chosen = self.chosen_item();
                let again = self.tree.take(&server, *lists);
                self.arrange(chosen.as_ref());
                if again {
                    return vec![Effect::Offers(Wish::List(server))];
                }
            }
            News::Read(ticket, read) => self.answered(
                ticket,
                match *read {
                    Ok(read) => Answer::Contents(Arc::new(read.contents)),
                    Err(fault) => Answer::Failed(fault),
                },
            ),
            News::Got(ticket, got) => self.answered(
                ticket,
                match *got {
                    Ok(got) => Answer::Messages(got.description, got.messages),
                    Err(fault) => Answer::Failed(fault),
                },
            ),
            News::Completed(query, done) => {
                if let Some(asking) = &mut self.asking {
                    return asking.completed(query, done);
                }
            }
            News::Told(followed, change) => return self.followed(followed, change, shell),
            News::Unfollowed(followed, fault) => {
                // Without a fault it was a person who ended it, and may have begun again since.
                if let Some(fault) = fault
                    && self.followed.remove(&followed).is_some()
                {
                    shell.say_bad(format!("{} is not watched: {}", followed.uri, fault.message()));
                }
            }
        }
        Vec::new()
    }

    fn answered(&mut self, ticket: Ticket, answer: Answer) {
        let Some(opened) = self.opened.as_mut().filter(|opened| opened.ticket == ticket) else {
            return;
        };
        if let (Request::Read(uri), Answer::Contents(_)) = (&opened.request, &answer) {
            let server = opened.item.server.clone();
            self.changed.remove(&Followed { server, uri: uri.clone() });
        }
        opened.answer = Some(answer);
        self.show();
    }

    fn is_asking(&self, focus: Pane) -> bool {
        self.asking.is_some() && focus == Pane::Content
    }

    fn chosen_item(&self) -> Option<Item> {
        self.tree.item(self.chosen()?)
    }

    fn step(&mut self, by: isize) {
        self.list.step(by, self.tree.rows().len());
        self.asking = None;
        self.page = Page::default();
        self.show();
    }

    fn refilter(&mut self) {
        self.tree.filter(self.filter.text());
        // The first thing that can be opened.
        let first = self.tree.rows().iter().position(|row| matches!(row, OfferRow::Item(..)));
        self.list.choose(first.unwrap_or(0), self.tree.rows().len());
        self.page = Page::default();
        self.show();
    }

    /// Chooses again what was chosen, wherever it is now.
    fn arrange(&mut self, chosen: Option<&Item>) {
        let rows = self.tree.rows();
        let at =
            |item: &Item| rows.iter().position(|row| self.tree.item(*row).as_ref() == Some(item));
        let again = chosen.and_then(at).unwrap_or(self.list.chosen());
        let length = rows.len();
        self.list.choose(again, length);
        self.show();
    }

    fn open(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if shell.focus == Pane::Content && self.is_open() {
            return self.fill(shell);
        }
        match self.chosen() {
            Some(OfferRow::Item(..)) => self.fill(shell),
            Some(row) => {
                self.tree.fold(row);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Opens what is chosen, or asks for its arguments first.
    fn fill(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(item) = self.chosen_item() else { return Vec::new() };
        shell.focus = Pane::Content;
        let Some(mut asking) = Asking::of(&self.tree, &item, self.earlier.get(&item)) else {
            let request = match item.kind {
                ItemKind::Resource => Request::Read(item.name.clone()),
                _ => Request::Get(item.name.clone(), JsonObject::new()),
            };
            return vec![self.request(item, request)];
        };
        let effects = asking.complete();
        self.asking = Some(asking);
        effects
    }

    fn request(&mut self, item: Item, request: Request) -> Effect {
        self.next += 1;
        let ticket = Ticket(self.next);
        let server = item.server.clone();
        let wish = match &request {
            Request::Read(uri) => Wish::Read { ticket, server, uri: uri.clone() },
            Request::Get(name, arguments) => {
                Wish::Get { ticket, server, name: name.clone(), arguments: arguments.clone() }
            }
        };
        self.opened = Some(Opened { item, ticket, request, answer: None });
        self.page = Page::default();
        self.show();
        Effect::Offers(wish)
    }

    fn act_asking(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        let asking = self.asking.as_mut()?;
        match action {
            Action::Run => Some(self.run()),
            Action::Back => {
                self.asking = None;
                shell.focus = Pane::Offered;
                Some(Vec::new())
            }
            Action::NextChoice if asking.take_suggestion() => Some(Vec::new()),
            other => asking.form.act(other).then(|| asking.complete()),
        }
    }

    fn run(&mut self) -> Vec<Effect> {
        let Some(asking) = &mut self.asking else { return Vec::new() };
        if !asking.is_filled() {
            return Vec::new();
        }
        let (item, arguments) = (asking.item.clone(), asking.texts());
        let request = match item.kind {
            ItemKind::Prompt => Request::Get(item.name.clone(), arguments.clone()),
            _ => Request::Read(asking.address().unwrap_or_default()),
        };
        self.earlier.insert(item.clone(), arguments);
        self.asking = None;
        vec![self.request(item, request)]
    }

    /// The servers are those of another host now: nothing is watched there, and what was listed is
    /// asked for anew.
    pub fn forget_servers(&mut self) -> Vec<Effect> {
        self.followed.clear();
        if !self.was_listed {
            return Vec::new();
        }
        self.tree.ask_all();
        vec![Effect::Offers(Wish::ListAll)]
    }

    fn listed_again(&mut self, shell: &mut Shell) -> Vec<Effect> {
        shell.say("asking all servers");
        self.tree.ask_all();
        vec![Effect::Offers(Wish::ListAll)]
    }

    fn back(&mut self, shell: &mut Shell) -> Option<Vec<Effect>> {
        if self.is_filtering {
            self.is_filtering = false;
        } else if self.is_reading() {
            self.opened = None;
            self.show();
            shell.say("given up");
            return Some(vec![Effect::Offers(Wish::GiveUp)]);
        } else if shell.is_zoomed {
            return None;
        } else if shell.focus == Pane::Content {
            shell.focus = Pane::Offered;
        } else if !self.filter.text().is_empty() {
            let chosen = self.chosen_item();
            self.filter.clear();
            self.tree.filter("");
            self.arrange(chosen.as_ref());
        } else {
            return None;
        }
        Some(Vec::new())
    }

    /// Writes down what the other pane shows.
    fn show(&mut self) {
        let opened = self.opened.as_ref().filter(|_| self.is_open());
        let page = match (opened, self.chosen()) {
            (Some(opened), _) => content::opened(opened, self.is_raw),
            (None, Some(row)) => content::about(&self.tree, row),
            (None, None) => Page::default(),
        };
        self.page.replace(page);
    }
}

/// A form for texts.
fn form(title: &str, schema: Value, earlier: Option<&JsonObject>) -> Form {
    Form::of_schema(title, &Arc::new(schema), earlier)
}
