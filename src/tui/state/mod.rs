//! Everything the console knows, as plain data, and what becomes of it.
//!
//! Owns: [`State::update`]: an event in, effects out. Pure: no clock, no input or output, so every
//! behaviour of the console can be tested by telling it what happened. Each view has a module of its
//! own and knows the [`Shell`] that all share, and no other view: what one wants of another is an
//! [`Errand`](super::event::Errand).

pub(super) mod bench;
mod calls;
mod catalogue;
mod document;
mod errands;
mod form;
mod history;
mod inbox;
mod line;
mod list;
mod live;
mod memory;
mod offers;
mod page;
mod palette;
mod servers;
mod shell;
mod side;
mod stage;
pub(super) mod stats;
mod text;
mod tools;
pub(super) mod trace;
mod tree;
mod trust;
mod update;
mod view;
mod viewer;
mod windows;

#[cfg(test)]
pub(super) mod craft_tests;
#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
pub(super) use {servers::tests as servers_tests, trace::tests as trace_tests};

use super::event::Effect;
use super::keys::{Action, When};
pub use bench::Bench;
pub use calls::{Call, Calls, Outcome};
pub use catalogue::{Catalogue, Query, Row, Sort};
pub use document::Document;
pub use form::{Form, FormRow, Shown, folds};
#[cfg(test)]
pub(super) use history::tests as history_tests;
pub use history::{File, History, Look};
pub use inbox::{Answer, Inbox, PendingApproval, PendingQuestion, Shows};
pub use line::Line;
pub use list::List;
pub use live::{Live, Nested, Progress, Retry};
#[cfg(test)]
pub(super) use offers::tests as offers_tests;
pub use offers::{
    Asking, Item, ItemKind, OfferRow, OfferServer, Offers, Suggestions, Tree as OfferTree,
};
pub use page::{Laid, Page, Piece};
pub use palette::{Command, Entry, PaletteWindow};
pub use servers::{Advertised, DriftLine, Facet, Past, Servers};
pub use shell::{Message, Overlay, Shell};
pub use side::{Portrait, Side};
pub use stage::Stage;
pub use stats::{Column, Stats};
pub use text::Text;
pub use tools::Tools;
pub use trace::Trace;
pub use tree::{Node, Tree};
#[cfg(test)]
pub(super) use trust::tests as trust_tests;
pub use trust::{ProjectTrust, Readiness, TrustWindow};
pub use view::{Pane, View};
pub use viewer::{Face, Viewer};

/// Everything the console knows.
#[derive(Debug)]
pub struct State {
    /// What all views share.
    pub shell: Shell,
    /// The tools.
    pub tools: Tools,
    /// The servers.
    pub servers: Servers,
    /// What crossed the wires.
    pub trace: Trace,
    /// The statistics.
    pub stats: Stats,
    /// The benchmark.
    pub bench: Bench,
    /// The calls of the past.
    pub history: History,
    /// What servers offer beside tools.
    pub offers: Offers,
    /// What a person is asked.
    pub inbox: Inbox,
    /// Trust in the project.
    pub trust: ProjectTrust,
    /// What is kept for the next run.
    keep: memory::Keep,
}

impl State {
    /// The state of a console that just opened.
    pub fn new(size: (u16, u16)) -> Self {
        Self {
            shell: Shell::new(size),
            tools: Tools::default(),
            servers: Servers::default(),
            trace: Trace::default(),
            stats: Stats::default(),
            bench: Bench::default(),
            history: History::default(),
            offers: Offers::default(),
            inbox: Inbox::default(),
            trust: ProjectTrust::default(),
            keep: memory::Keep::default(),
        }
    }

    /// What is wanted first.
    pub fn begin(&mut self) -> Vec<Effect> {
        let recall = Effect::Memory(super::event::memory::Wish::Recall);
        let mut effects = vec![recall, Effect::ListDeclared, Effect::LookAtServers];
        effects.extend(self.stats.look());
        effects
    }

    /// Whether something on the screen changes by itself.
    pub fn is_moving(&self) -> bool {
        self.shell.calls.running().next().is_some()
            || self.servers.are_starting()
            || self.inbox.is_moving()
            || self.trust.window.is_some()
            || self.stage_of(self.shell.view).is_moving()
    }

    /// Where keys are looked up, the nearest place first.
    pub fn places(&self) -> Vec<When> {
        if !self.inbox.approvals.is_empty() {
            return vec![When::Approval, When::Pane];
        }
        if self.trust.window.is_some() {
            return vec![When::Trust, When::Pane];
        }
        match self.shell.overlay {
            Some(Overlay::Palette(_)) => return vec![When::Palette],
            Some(Overlay::Running(_)) => return vec![When::Running, When::Overlay, When::Pane],
            _ => {}
        }
        if self.shell.overlay.is_some() {
            return vec![When::Overlay, When::Pane, When::Anywhere];
        }
        let stage = self.stage_of(self.shell.view);
        let places = stage.places(self.shell.focus).into_iter();
        // A form knows best which keys it takes at the moment.
        let form = stage.form(self.shell.focus);
        let at_form = |place| match (place, form) {
            (When::Form, Some(form)) => form.places(),
            _ => vec![place],
        };
        places.flat_map(at_form).collect()
    }

    /// Whether an action has nothing to do at the moment, wherever it is bound.
    pub fn is_idle(&self, action: Action) -> bool {
        match (action, &self.trust.window) {
            (Action::Trust, _) => !self.trust.has_question(),
            (Action::Turn, Some(window)) => window.request.previous.is_none(),
            _ => false,
        }
    }

    /// Whether the view that is shown holds still because a person wants it to.
    pub fn is_paused(&self) -> bool {
        self.stage_of(self.shell.view).is_paused()
    }

    fn stage_of(&self, view: View) -> &dyn Stage {
        match view {
            View::Tools => &self.tools,
            View::Servers => &self.servers,
            View::Trace => &self.trace,
            View::Stats => &self.stats,
            View::Bench => &self.bench,
            View::History => &self.history,
            View::Offers => &self.offers,
            View::Inbox => &self.inbox,
        }
    }

    /// The view that is shown, and what it shares with the others.
    fn stage(&mut self) -> (&mut dyn Stage, &mut Shell) {
        let stage: &mut dyn Stage = match self.shell.view {
            View::Tools => &mut self.tools,
            View::Servers => &mut self.servers,
            View::Trace => &mut self.trace,
            View::Stats => &mut self.stats,
            View::Bench => &mut self.bench,
            View::History => &mut self.history,
            View::Offers => &mut self.offers,
            View::Inbox => &mut self.inbox,
        };
        (stage, &mut self.shell)
    }
}
