//! The state of the console as plain data, and its updates.
//!
//! Owns: [`AppState::update`]: an event in, effects out. Pure: no clock, no input or output, so every
//! behaviour of the console can be tested by telling it what happened. Each view has a module of its
//! own and knows the [`AppContext`] that all share, and no other view: what one wants of another is an
//! [`Navigation`](super::event::Navigation).

pub(super) mod bench;
mod call_activity;
mod calls;
mod context;
mod diagnostics;
mod filter;
mod form;
mod history;
mod inbox;
mod line_input;
mod live_calls;
mod navigation;
mod offerings;
mod other_clients;
mod overlays;
mod palette;
mod persistence;
mod pin_window;
mod reading;
mod result_viewer;
mod save_call;
mod servers;
pub(super) mod stats;
mod text_area;
mod tool_detail;
mod tool_list;
mod tools;
pub(super) mod trace;
mod trust;
mod update;
mod view;

#[cfg(test)]
pub(super) mod craft_tests;
#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
pub(super) use {servers::tests as servers_tests, trace::tests as trace_tests};

use super::event::AppEffect;
use super::keys::{Action, KeyContext};
pub use super::list_cursor::ListCursor;
pub use super::presentation::documents::schema_verdict;
pub use super::presentation::json_lines::role as json_role;
pub use super::presentation::json_tree::{JsonTree, JsonTreeNode};
pub use super::presentation::scroll_text::{
    ScrollPosition, ScrollText, StyledSpan, TextLayout, TextLimits, TextLine,
};
pub use super::presentation::table::{ResultColumn, ResultTable, cell_text};
pub use super::presentation::words::pieces;
pub use super::presentation::{ResultFormat, json_lines};
pub use super::view_id::{Pane, ViewId};
pub use bench::BenchView;
pub use call_activity::{CallActivity, CallProgress};
pub use calls::{ConsoleCall, ConsoleCalls};
pub use context::{AppContext, Overlay, ShownProjects};
pub use diagnostics::ConfigurationProblems;
pub use form::{FormRow, SchemaForm, folds, fresh_draft, is_date};
#[cfg(test)]
pub(super) use history::tests as history_tests;
pub use history::{EntryFormat, HistoryFileState, HistoryView};
pub use inbox::{AnswerDraft, ApprovalTab, InboxView, PendingApproval, PendingQuestion};
pub use line_input::LineInput;
pub use live_calls::{LIVE_SECONDS, LiveToolCalls};
#[cfg(test)]
pub(super) use offerings::tests as offers_tests;
pub use offerings::{OfferingForm, OfferingKind, OfferingRow, OfferingServer, OfferingsView};
pub use other_clients::{OtherCall, OtherClients};
pub use palette::PaletteWindow;
pub use pin_window::PinWindow;
pub use reading::Readiness;
pub use result_viewer::ResultViewer;
pub use save_call::SaveCallWindow;
pub use servers::{DriftLine, ServerActivity, ServerTab, ServerToolLists, ServersView};
pub use stats::StatsView;
pub use text_area::TextArea;
pub use tool_detail::{DetailTab, ToolDetail};
pub use tool_list::{
    ToolGroup, ToolLine, ToolListState, ToolRow, ToolSearch, ToolSort, UsageByName, UsageFigures,
};
pub use tools::ToolsView;
pub use trace::TraceView;
#[cfg(test)]
pub(super) use trust::tests as trust_tests;
pub use trust::{ProjectTrust, TrustWindow};
pub use view::View;

/// Everything the console knows.
#[derive(Debug)]
pub struct AppState {
    pub context: AppContext,
    pub tools: ToolsView,
    pub servers: ServersView,
    /// What crossed the wires.
    pub trace: TraceView,
    pub stats: StatsView,
    pub bench: BenchView,
    /// The calls of the past.
    pub history: HistoryView,
    /// The resources view: what servers offer beside tools.
    pub offerings: OfferingsView,
    /// Questions from servers and approvals.
    pub inbox: InboxView,
    pub live: live_calls::LiveCalls,
    pub others: OtherClients,
    pub trust: ProjectTrust,
    pub configuration_problems: ConfigurationProblems,
    has_stale_figures: bool,
    /// A tool compared with its pin, while [`Overlay::Pin`] shows it.
    pub pin_window: Option<PinWindow>,
}

impl AppState {
    pub fn new(size: (u16, u16)) -> Self {
        Self {
            context: AppContext::new(size),
            tools: ToolsView::default(),
            servers: ServersView::default(),
            trace: TraceView::default(),
            stats: StatsView::default(),
            bench: BenchView::default(),
            history: HistoryView::default(),
            offerings: OfferingsView::default(),
            inbox: InboxView::default(),
            live: live_calls::LiveCalls::default(),
            others: OtherClients::default(),
            trust: ProjectTrust::default(),
            configuration_problems: ConfigurationProblems::default(),
            has_stale_figures: false,
            pin_window: None,
        }
    }

    pub fn initial_effects(&mut self) -> Vec<AppEffect> {
        let recall = AppEffect::Persistence(super::event::persistence::PersistenceEffect::Load);
        let mut effects = vec![recall, AppEffect::ListDeclared, AppEffect::RefreshServers];
        effects.extend(self.stats.refresh());
        effects
    }

    /// Whether something on the screen changes by itself.
    pub fn is_moving(&self) -> bool {
        self.context.calls.running().next().is_some()
            || self.others.running().next().is_some()
            || self.has_stale_figures
            || self.servers.is_any_starting()
            || self.inbox.is_animating()
            || self.trust.window.is_some()
            || self.context.overlay == Some(Overlay::Pin)
            || self.is_live_moving()
            || self.view_state(self.context.view).is_animating()
    }

    fn is_live_moving(&self) -> bool {
        let calls = || self.live.of(self.tools.subject()?);
        self.context.view == ViewId::Tools
            && calls().is_some_and(|calls| calls.is_recent(self.context.now))
    }

    pub fn key_contexts(&self) -> Vec<KeyContext> {
        if !self.inbox.approvals.is_empty() {
            return vec![KeyContext::Approval, KeyContext::Pane];
        }
        if self.trust.window.is_some() {
            return vec![KeyContext::Trust, KeyContext::Pane];
        }
        match self.context.overlay {
            Some(Overlay::Palette(_)) => return vec![KeyContext::Palette],
            Some(Overlay::SaveCall(_)) => return vec![KeyContext::SaveCall],
            Some(Overlay::Running(_)) => {
                return vec![KeyContext::Running, KeyContext::Overlay, KeyContext::Pane];
            }
            _ => {}
        }
        if let Some(overlay) = &self.context.overlay {
            let own = match overlay {
                Overlay::Pin => Some(KeyContext::PinReview),
                Overlay::Problems => Some(KeyContext::Problems),
                _ => None,
            };
            // A key never acts on what is behind.
            let shared = [KeyContext::Overlay, KeyContext::Pane];
            return own.into_iter().chain(shared).collect();
        }
        let view = self.view_state(self.context.view);
        let places = view.key_contexts(self.context.focus).into_iter();
        // A form knows best which keys it takes at the moment.
        let form = view.form(self.context.focus);
        let at_form = |place| match (place, form) {
            (KeyContext::Form, Some(form)) => form.key_contexts(),
            _ => vec![place],
        };
        places.flat_map(at_form).collect()
    }

    /// Whether an action currently has no effect, wherever it is bound.
    pub fn is_unavailable(&self, action: Action) -> bool {
        match (action, &self.trust.window) {
            (Action::Trust, _) => !self.trust.has_question(),
            (Action::Add | Action::Remove, _) => {
                let form = self.view_state(self.context.view).form(self.context.focus);
                form.is_some_and(|form| !form.is_json() && !form.has_items())
            }
            // Other forms fill in something else than the call of a tool.
            (Action::SaveCall, _) => self.context.view != ViewId::Tools,
            (Action::Problems, _) => self.configuration_problems.is_empty(),
            (Action::ChangeFormat, Some(window)) => window.request.previous.is_none(),
            _ => false,
        }
    }

    /// Whether the view that is shown holds still because a person wants it to.
    pub fn is_paused(&self) -> bool {
        self.view_state(self.context.view).is_paused()
    }

    fn view_state(&self, view: ViewId) -> &dyn View {
        match view {
            ViewId::Tools => &self.tools,
            ViewId::Servers => &self.servers,
            ViewId::Trace => &self.trace,
            ViewId::Stats => &self.stats,
            ViewId::Bench => &self.bench,
            ViewId::History => &self.history,
            ViewId::Offerings => &self.offerings,
            ViewId::Inbox => &self.inbox,
        }
    }

    fn active_view(&mut self) -> (&mut dyn View, &mut AppContext) {
        let view: &mut dyn View = match self.context.view {
            ViewId::Tools => &mut self.tools,
            ViewId::Servers => &mut self.servers,
            ViewId::Trace => &mut self.trace,
            ViewId::Stats => &mut self.stats,
            ViewId::Bench => &mut self.bench,
            ViewId::History => &mut self.history,
            ViewId::Offerings => &mut self.offerings,
            ViewId::Inbox => &mut self.inbox,
        };
        (view, &mut self.context)
    }
}
