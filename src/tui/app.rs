//! The state of the console as plain data, and its updates.
//!
//! Owns: [`AppState::update`]: an event in, effects out. Pure: no clock, no input or output, so every
//! behaviour of the console can be tested by telling it what happened. Each view has a module of its
//! own and knows the [`AppContext`] that all share, and no other view: what one wants of another is an
//! [`Navigation`].

use std::collections::BTreeMap;

use crate::host::example;
use crate::tui::calls::{self, OtherClients};
use crate::tui::keys::{self, Binding};
use crate::tui::prelude::*;
use crate::tui::tasks::{Recollection, recall};
use crate::tui::views::bench::BenchView;
use crate::tui::views::bench::plan::PlanField;
use crate::tui::views::form;
use crate::tui::views::history::HistoryView;
use crate::tui::views::inbox::{self, InboxView};
use crate::tui::views::offerings::OfferingsView;
use crate::tui::views::overlays::ConfigurationProblems;
use crate::tui::views::pins::PinWindow;
use crate::tui::views::servers::ServersView;
use crate::tui::views::stats::StatsView;
use crate::tui::views::tools::ToolsView;
use crate::tui::views::trace::TraceView;
use crate::tui::views::trust::ProjectTrust;

#[derive(Debug, Default)]
pub struct AppState {
    pub context: AppContext,
    pub tools: ToolsView,
    pub servers: ServersView,
    pub trace: TraceView,
    pub stats: StatsView,
    pub bench: BenchView,
    pub history: HistoryView,
    /// The resources view: what servers offer beside tools.
    pub offerings: OfferingsView,
    /// Questions from servers and approvals.
    pub inbox: InboxView,
    pub live: calls::LiveCalls,
    pub others: OtherClients,
    pub trust: ProjectTrust,
    pub configuration_problems: ConfigurationProblems,
    pub has_stale_figures: bool,
    /// Servers whose changed tools are being listed, and whether they have changed again since.
    pub relisting: BTreeMap<String, bool>,
    /// A tool compared with its pin, while [`Overlay::Pin`] shows it.
    pub pin_window: Option<PinWindow>,
}

impl AppState {
    pub fn new(size: (u16, u16)) -> Self {
        Self { context: AppContext::new(size), ..Self::default() }
    }

    pub fn initial_effects(&mut self) -> Effects {
        self.context.effects = vec![
            recall(self.context.appearance).into(),
            AppEffect::ListDeclared,
            AppEffect::RefreshServers,
        ];
        self.stats.refresh(&mut self.context);
        std::mem::take(&mut self.context.effects)
    }

    pub fn is_moving(&self) -> bool {
        self.context.calls.is_running()
            || self.others.running().next().is_some()
            || self.has_stale_figures
            || self.servers.is_any_starting()
            || self.inbox.is_animating()
            || self.trust.window.is_some()
            || self.context.overlay == Some(Overlay::Pin)
            || (self.context.view == ViewId::Tools && self.live.all.is_recent(self.context.now))
            || self.view_state(self.context.view).is_animating()
    }

    pub fn key_contexts(&self) -> Vec<KeyContext> {
        if let Some(pending) = self.inbox.approvals.front() {
            return vec![pending.key_context(), &PANE];
        }
        if self.trust.window.is_some() {
            return vec![&inbox::TRUST, &PANE];
        }
        if let Some(overlay) = &self.context.overlay {
            let own = match overlay {
                Overlay::Help(window) if window.filter.is_typed => return vec![&keys::TEXT],
                Overlay::Palette(_) => return vec![&keys::PALETTE],
                Overlay::SaveCall(_) => return vec![&keys::SAVE_CALL],
                Overlay::Question(_) => return vec![&inbox::QUESTION],
                Overlay::Help(_) => Some(&keys::HELP),
                Overlay::Running(_) => Some(&keys::RUNNING),
                Overlay::Pin => Some(&keys::PIN_REVIEW),
                Overlay::Problems => Some(&keys::PROBLEMS),
                Overlay::ConfirmQuit => None,
            };
            // A key never acts on what is behind.
            let shared = [&keys::OVERLAY, &PANE];
            return own.into_iter().chain(shared).collect();
        }
        let places = self.view_key_contexts().into_iter();
        // A form knows best which keys it takes at the moment.
        let form = self.view_state(self.context.view).form(self.context.focus);
        let at_form = |place| match form {
            Some(form) if place == &form::FORM => form.key_contexts(),
            _ => vec![place],
        };
        places.flat_map(at_form).collect()
    }

    pub fn view_key_contexts(&self) -> Vec<KeyContext> {
        let view = self.view_state(self.context.view);
        if view.filter().is_some_and(|filter| filter.is_typed) {
            return vec![&keys::TEXT];
        }
        view.key_contexts(self.context.focus)
    }

    /// Whether a key does something with a row, and there is none.
    pub fn lacks_row(&self, binding: &Binding) -> bool {
        binding.needs_row && self.view_state(self.context.view).is_list_empty()
    }

    /// Whether a key currently has no effect.
    pub fn is_unavailable(&self, binding: &Binding) -> bool {
        let view = self.view_state(self.context.view);
        let is_bench = self.context.view == ViewId::Bench && !self.has_overlay();
        match (binding.action, &self.trust.window) {
            _ if self.lacks_row(binding) && !self.has_overlay() => true,
            (Action::Trust, _) => self.trust.question.is_none(),
            (Action::Add | Action::Remove, _) => {
                let form = view.form(self.context.focus);
                form.is_some_and(|form| form.json.is_none() && !form.has_items())
            }
            // Other forms fill in something else than the call of a tool.
            (Action::SaveCall, _) => self.context.view != ViewId::Tools,
            // The plan of a benchmark is no form of a schema.
            (Action::Validate | Action::SwitchForm, _) => is_bench,
            (Action::Run, _) => is_bench && self.bench.is_running(),
            (Action::Stop | Action::Pause, _) => is_bench && !self.bench.is_running(),
            (Action::Problems, _) => self.configuration_problems.is_empty(),
            (Action::ChangeFormat, Some(window)) => window.request.previous.is_none(),
            _ => false,
        }
    }

    pub fn view_state(&self, view: ViewId) -> &dyn View {
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

    pub fn active_view(&mut self) -> (&mut dyn View, &mut AppContext) {
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

pub trait View {
    /// Performs an action; `false` when the view has no use for it.
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool;

    fn key_contexts(&self, focus: Pane) -> Vec<KeyContext>;

    /// Scrolls a pane by this many lines; negative moves up.
    fn scroll(&mut self, pane: Pane, by: isize, context: &mut AppContext);

    fn enter(&mut self, _context: &mut AppContext) {}

    /// The text that is being written, if one is.
    fn line(&mut self, focus: Pane) -> Option<&mut TextInput> {
        self.form_mut(focus).and_then(SchemaForm::line)
    }

    fn on_text_changed(&mut self, _context: &mut AppContext) {}

    /// What narrows the list in the first pane, or finds a row of it.
    fn filter(&self) -> Option<&ListFilter> {
        None
    }

    fn filter_mut(&mut self) -> Option<&mut ListFilter> {
        None
    }

    /// Whether the list in the first pane has no row that could be chosen.
    fn is_list_empty(&self) -> bool {
        false
    }

    /// The form that is filled in, if one is: it can be checked, and written in an editor.
    fn form(&self, _focus: Pane) -> Option<&SchemaForm> {
        None
    }

    fn form_mut(&mut self, _focus: Pane) -> Option<&mut SchemaForm> {
        None
    }

    /// The text of several lines that is being written, if one is.
    fn text(&mut self, focus: Pane) -> Option<&mut TextInput> {
        self.form_mut(focus).and_then(SchemaForm::text)
    }

    /// Takes in the current time; only called while the view is shown.
    fn tick(&mut self, _context: &mut AppContext) {}

    fn is_animating(&self) -> bool {
        false
    }
}

impl AppState {
    /// Performs the request here; returns the effects left to run.
    pub fn resolve_navigation(&mut self, effects: Effects) -> Effects {
        let mut left = Vec::new();
        for effect in effects {
            match effect {
                AppEffect::Navigate(navigation) => {
                    self.navigate(navigation);
                    let more = std::mem::take(&mut self.context.effects);
                    left.extend(self.resolve_navigation(more));
                }
                other => left.push(other),
            }
        }
        left
    }

    fn navigate(&mut self, navigation: Navigation) {
        match navigation {
            // Without the tool another one would be chosen, and seem to be meant.
            Navigation::FillArguments { tool, .. }
            | Navigation::Call { tool, .. }
            | Navigation::ShowTool(tool)
                if self.tools.catalogue.find_by_name(&tool).is_none() =>
            {
                let why = "it was removed or renamed, or its server is not connected";
                self.context.show_error(format!("no tool named {tool}: {why}"));
            }
            Navigation::FillArguments { tool, arguments } => {
                self.show(ViewId::Tools);
                self.tools.fill_arguments(&tool, arguments.as_ref(), &mut self.context);
            }
            Navigation::Call { tool, arguments } => {
                self.show(ViewId::Tools);
                self.tools.choose(&tool);
                self.tools.call(tool, arguments, &mut self.context);
            }
            Navigation::ShowTool(tool) => {
                self.show(ViewId::Tools);
                self.tools.choose(&tool);
            }
            Navigation::ShowTools(server) => {
                self.show(ViewId::Tools);
                self.tools.find(&format!("src:{server} "));
            }
            Navigation::ShowTrace(server) => self.show_trace(&format!("srv:={server} ")),
            Navigation::ShowCall(call) => self.show_trace(&format!("call:{} ", call.0)),
            Navigation::ShowHistory(tool) => {
                self.history.filter_by_tool(&tool);
                self.show(ViewId::History);
            }
            Navigation::LeaveInbox => {
                let (view, focus) = self.context.before_inbox;
                self.show(view);
                self.context.focus = focus;
            }
            Navigation::AskTrust => self.trust.open(&mut self.context),
            Navigation::OpenQuestion(id) => {
                self.show(ViewId::Inbox);
                self.inbox.open(id, &mut self.context);
            }
            Navigation::Bench(tool) => {
                let arguments = self.default_bench_arguments(&tool);
                self.show(ViewId::Bench);
                self.bench.set_target(&tool, arguments.as_ref());
            }
            Navigation::SetBenchTarget { side, tool } => {
                let arguments = self.default_bench_arguments(&tool);
                self.bench.form.set_target(side, &tool, arguments.as_ref());
            }
            Navigation::PickBenchTarget(side) => {
                let rows = self.tools.catalogue.rows.clone();
                self.bench.open_picker(side, rows, &mut self.context);
            }
        }
    }

    fn show_trace(&mut self, query: &str) {
        self.trace.find(query);
        self.show(ViewId::Trace);
    }

    fn default_bench_arguments(&self, tool: &str) -> Option<JsonObject> {
        let is_written =
            |form: &&SchemaForm| form.tool == tool && form.is_edited && form.missing().is_none();
        let form = self.tools.shown_form().filter(is_written);
        let called = || self.context.calls.arguments_of(tool).cloned();
        if let Some(arguments) = form.map(SchemaForm::arguments).or_else(called) {
            return Some(arguments);
        }
        let schema = &self.tools.catalogue.find_by_name(tool)?.tool.input_schema;
        let required = schema.get("required").and_then(serde_json::Value::as_array)?;
        (!required.is_empty()).then(|| example::arguments(schema))
    }

    /// Shows a view with its first pane focused, and lets it ask for what it needs.
    pub fn show(&mut self, view: ViewId) {
        if self.context.view != ViewId::Inbox {
            self.context.before_inbox = (self.context.view, self.context.focus);
        }
        // A benchmark begins with the tool one looks at.
        if view == ViewId::Bench
            && self.bench.form.text(PlanField::ToolA).is_empty()
            && let Some(tool) = self.tools.subject().map(str::to_owned)
        {
            let arguments = self.default_bench_arguments(&tool);
            self.bench.set_target(&tool, arguments.as_ref());
        }
        self.context.view = view;
        self.context.focus = view.panes()[0];
        self.context.is_zoomed = false;
        let (view, context) = self.active_view();
        view.enter(context);
    }
}

impl AppState {
    pub fn recall(&mut self, recollection: Recollection) {
        let Recollection { settings, arguments, problems } = recollection;
        self.context.appearance = settings.look;
        self.context.keys = settings.keys;
        self.context.calls.saved_arguments = arguments;
        if let Some(first) = problems.first() {
            let more = match problems.len() - 1 {
                0 => String::new(),
                more => format!("  ({more} more; ? shows all)"),
            };
            self.context.show_error(format!("{first}{more}"));
        }
        self.context.problems = problems;
    }
}
