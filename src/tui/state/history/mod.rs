//! The calls of the past: a list, one of them whole, two of them compared.
//!
//! Owns: what is asked for and when. Never does: read a file.

mod acts;
mod query;
mod shown;
#[cfg(test)]
pub(in crate::tui) mod tests;

use super::list::steps;
use super::{Line, List, Page, Pane, Shell, Stage, View};
use crate::history::Entry;
use crate::history::compare::Comparison;
use crate::model::Fault;
use crate::tui::event::Effect;
use crate::tui::event::history::{News, Past, Wanted, Wish};
use crate::tui::keys::{Action, When};
use crate::tui::theme::Meaning;

pub use query::Query;
pub use shown::Look;

/// How many calls are read at once.
const AT_ONCE: usize = 500;

/// The calls of the past.
#[derive(Debug, Default)]
pub struct History {
    /// The chosen one of those that are found.
    pub list: List,
    /// What is searched for.
    pub filter: Line,
    /// Whether that is being written.
    pub is_filtering: bool,
    /// The call that others are compared with, by its identity.
    pub marked: Option<String>,
    /// How results are shown.
    pub look: Look,
    /// The chosen call, or how two differ.
    pub page: Page,
    /// What is known of the file.
    pub file: File,
    query: Query,
    calls: Vec<Past>,
    found: Vec<usize>,
    limit: usize,
    /// What is being read, or was read last.
    asked: Option<(Wanted, usize)>,
    is_reading: bool,
    is_stale: bool,
    /// The call that is being read, or was read last.
    opened: Option<String>,
    is_opening: bool,
    entry: Option<Entry>,
    changed: Option<Result<Option<bool>, Fault>>,
    comparison: Option<Box<Comparison>>,
    /// What is to be done when the call was read.
    then: Option<Action>,
}

/// What is known of the file.
#[derive(Debug, Default)]
pub enum File {
    /// Nothing yet.
    #[default]
    Unread,
    /// It was read.
    Read {
        /// Lines that could not be read.
        damaged: usize,
        /// Whether there are more calls than were read.
        more: bool,
        /// Whether calls are kept at the moment.
        is_kept: bool,
    },
    /// It cannot be read, and why.
    Unreadable(Fault),
}

impl Stage for History {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        if let Some(by) = steps(action)
            && (shell.focus == Pane::Past || self.is_filtering)
        {
            self.step(by);
            return Some(self.ask());
        }
        match action {
            Action::Filter => {
                shell.focus = Pane::Past;
                self.is_filtering = true;
            }
            Action::Open => shell.focus = Pane::Entry,
            Action::Refresh => {
                self.is_stale = true;
                return Some(self.ask());
            }
            Action::Turn => {
                self.look = self.look.next();
                self.show();
            }
            Action::Mark => self.mark(shell),
            Action::Diff => return Some(self.diff(shell)),
            Action::Replay | Action::ReplayEdited | Action::CopyCommand => {
                return Some(self.with_entry(action, shell));
            }
            Action::Copy => return Some(self.copied(shell)),
            Action::Export => return Some(self.exported(shell)),
            Action::Back => return self.back(shell),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        if self.is_filtering {
            return vec![When::Text];
        }
        vec![When::History, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        match focus {
            Pane::Past => self.step(by),
            _ => self.page.scroll(by),
        }
    }

    fn enter(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        self.is_stale = true;
        self.ask()
    }

    fn line(&mut self, _focus: Pane) -> Option<&mut Line> {
        self.is_filtering.then_some(&mut self.filter)
    }

    fn rewritten(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        self.refilter();
        self.list.choose(0, self.found.len());
        self.ask()
    }

    fn tick(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        self.ask()
    }

    fn is_moving(&self) -> bool {
        self.chosen().is_some_and(|call| Some(&call.id) != self.opened.as_ref())
    }
}

impl History {
    /// The calls that are found, the newest first.
    pub fn found(&self) -> impl ExactSizeIterator<Item = &Past> + '_ {
        self.found.iter().map(|at| &self.calls[*at])
    }

    /// How many were read.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether none was read.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether the file is being read.
    pub fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// The chosen call.
    pub fn chosen(&self) -> Option<&Past> {
        self.calls.get(*self.found.get(self.list.chosen())?)
    }

    /// The tool of the call that is shown.
    pub fn shown_tool(&self) -> Option<&str> {
        self.entry.as_ref().map(|entry| &*entry.tool)
    }

    /// What of the filter is not understood.
    pub fn problem(&self) -> Option<&str> {
        self.query.problem.as_deref()
    }

    /// Whether two calls are compared.
    pub fn is_comparing(&self) -> bool {
        self.comparison.is_some()
    }

    /// Searches for the calls of one tool.
    pub fn look_for(&mut self, tool: &str) {
        self.filter = Line::of(Query::for_tool(tool));
        self.is_filtering = false;
        self.refilter();
        self.list.choose(0, self.found.len());
    }

    /// A call ended here, so there is one more in the file.
    pub fn grown(&mut self, shown: View) -> Vec<Effect> {
        self.is_stale = true;
        if shown == View::History { self.ask() } else { Vec::new() }
    }

    /// Takes in what came of a wish.
    pub fn hear(&mut self, news: News, shell: &mut Shell) -> Vec<Effect> {
        match news {
            News::Read { calls, damaged, more, is_kept } => {
                self.is_reading = false;
                self.file = File::Read { damaged, more, is_kept };
                self.take(calls);
            }
            News::Unread(fault) => {
                self.is_reading = false;
                self.file = File::Unreadable(fault);
                self.take(Vec::new());
            }
            News::Entry(entry) => {
                self.is_opening = false;
                self.changed = None;
                if self.entry.as_ref().is_none_or(|before| before.id != entry.id) {
                    self.page = Page::default();
                }
                self.entry = Some(*entry);
                self.show();
                let is_chosen = self.chosen().map(|call| &call.id) == self.opened.as_ref();
                if let Some(action) = self.then.take_if(|_| is_chosen) {
                    return self.with_entry(action, shell);
                }
            }
            News::Missing(id, fault) => {
                self.is_opening = false;
                self.then = None;
                if self.opened.as_ref() == Some(&id) {
                    self.entry = None;
                    self.page = Page::default();
                    self.page.line(Meaning::Bad, fault.message());
                }
            }
            News::Judged(id, changed) => {
                if self.entry.as_ref().is_some_and(|entry| entry.id == id) {
                    self.changed = Some(changed);
                    self.show();
                }
            }
            News::Compared(comparison) => {
                self.comparison = Some(comparison);
                self.page = Page::default();
                self.show();
                shell.focus = if shell.view == View::History { Pane::Entry } else { shell.focus };
            }
            News::Incomparable(fault) => shell.say_bad(fault.message()),
        }
        self.ask()
    }

    /// What has to be asked for, by what is known and what is being read already.
    fn ask(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let wanted = (self.query.wanted.clone(), self.limit.max(AT_ONCE));
        if !self.is_reading && (self.is_stale || self.asked.as_ref() != Some(&wanted)) {
            (self.is_reading, self.is_stale) = (true, false);
            self.asked = Some(wanted.clone());
            let (wanted, limit) = wanted;
            effects.push(Effect::History(Wish::Read { wanted, limit }));
        }
        let id = self.chosen().map(|call| call.id.clone());
        if !self.is_opening && id.is_some() && id != self.opened {
            self.is_opening = true;
            self.opened.clone_from(&id);
            effects.extend(id.map(|id| Effect::History(Wish::Open(id))));
        }
        effects
    }

    fn take(&mut self, calls: Vec<Past>) {
        // Who looks at the newest call goes on looking at the newest.
        let chosen = self.chosen().map(|call| call.id.clone()).filter(|_| self.list.chosen() > 0);
        self.calls = calls;
        self.refilter();
        let again = chosen.and_then(|id| self.found().position(|call| call.id == id));
        self.list.choose(again.unwrap_or(0), self.found.len());
        if self.found.is_empty() {
            (self.entry, self.opened) = (None, None);
            self.show();
        }
    }

    fn refilter(&mut self) {
        self.query = Query::of(self.filter.text());
        self.found = self.query.find(&self.calls);
    }

    fn step(&mut self, by: isize) {
        let before = self.list.chosen();
        self.list.step(by, self.found.len());
        let at_end = self.list.chosen() + 1 >= self.found.len();
        if by > 0
            && at_end
            && matches!(self.file, File::Read { more: true, .. })
            && !self.is_reading
        {
            self.limit = self.len() + AT_ONCE;
        }
        if self.list.chosen() != before {
            self.comparison = None;
            self.then = None;
        }
    }

    /// The chosen call, when it was read.
    fn entry(&self) -> Option<&Entry> {
        let chosen = self.chosen()?;
        self.entry.as_ref().filter(|entry| entry.id == chosen.id)
    }

    fn back(&mut self, shell: &mut Shell) -> Option<Vec<Effect>> {
        if self.is_filtering {
            self.is_filtering = false;
        } else if self.comparison.take().is_some() {
            self.page = Page::default();
            self.show();
        } else if shell.is_zoomed {
            return None;
        } else if shell.focus == Pane::Entry {
            shell.focus = Pane::Past;
        } else if !self.filter.text().is_empty() {
            self.filter.clear();
            self.refilter();
            return Some(self.ask());
        } else {
            return None;
        }
        Some(Vec::new())
    }

    /// Writes down what the entry pane shows.
    fn show(&mut self) {
        let page = match (&self.comparison, &self.entry) {
            (Some(comparison), _) => shown::comparison(comparison),
            (None, Some(entry)) => shown::entry(entry, self.changed.as_ref(), self.look),
            (None, None) => Page::default(),
        };
        self.page.replace(page);
    }
}
