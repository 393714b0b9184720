//! Requests of one view to another.

use super::{AppState, ViewId};
use crate::host::example;
use crate::model::JsonObject;
use crate::tui::event::{AppEffect, Navigation};

impl AppState {
    /// Performs the request here; returns the effects left to run.
    pub(super) fn resolve_navigation(&mut self, effects: Vec<AppEffect>) -> Vec<AppEffect> {
        let mut left = Vec::new();
        for effect in effects {
            match effect {
                AppEffect::Navigate(navigation) => {
                    let more = self.navigate(navigation);
                    left.extend(self.resolve_navigation(more));
                }
                other => left.push(other),
            }
        }
        left
    }

    fn navigate(&mut self, navigation: Navigation) -> Vec<AppEffect> {
        match navigation {
            // Without the tool another one would be chosen, and seem to be meant.
            Navigation::FillArguments { tool, .. }
            | Navigation::Call { tool, .. }
            | Navigation::ShowTool(tool)
                if self.tools.catalogue.find_by_name(&tool).is_none() =>
            {
                let why = "it was removed or renamed, or its server is not connected";
                self.context.show_error(format!("no tool named {tool}: {why}"));
                Vec::new()
            }
            Navigation::FillArguments { tool, arguments } => {
                let effects = self.show(ViewId::Tools);
                self.tools.fill_arguments(&tool, arguments.as_ref(), &mut self.context);
                effects
            }
            Navigation::Call { tool, arguments } => {
                let mut effects = self.show(ViewId::Tools);
                self.tools.choose(&tool);
                effects.push(self.tools.call(tool, arguments, &mut self.context));
                effects
            }
            Navigation::ShowTool(tool) => {
                let effects = self.show(ViewId::Tools);
                self.tools.choose(&tool);
                effects
            }
            Navigation::ShowTools(server) => {
                let effects = self.show(ViewId::Tools);
                self.tools.find(&format!("src:{server} "));
                effects
            }
            Navigation::ShowTrace(server) => self.show_trace(&format!("srv:={server} ")),
            Navigation::ShowCall(call) => self.show_trace(&format!("call:{} ", call.0)),
            Navigation::ShowHistory(tool) => {
                self.history.filter_by_tool(&tool);
                self.show(ViewId::History)
            }
            Navigation::AskTrust => {
                self.trust.open(&mut self.context);
                Vec::new()
            }
            Navigation::Bench { tool, arguments } => {
                let arguments = arguments.or_else(|| self.default_bench_arguments(&tool));
                let effects = self.show(ViewId::Bench);
                self.bench.set_target(&tool, arguments.as_ref());
                effects
            }
            Navigation::SetBenchTarget { side, tool } => {
                let arguments = self.default_bench_arguments(&tool);
                self.bench.form.set_target(side, &tool, arguments.as_ref());
                Vec::new()
            }
            Navigation::PickBenchTarget(side) => {
                let rows = self.tools.catalogue.rows().to_vec();
                self.bench.open_picker(side, rows, &mut self.context);
                Vec::new()
            }
        }
    }

    fn show_trace(&mut self, words: &str) -> Vec<AppEffect> {
        self.trace.find(words);
        self.show(ViewId::Trace)
    }

    fn default_bench_arguments(&self, tool: &str) -> Option<JsonObject> {
        if let Some(known) = self.context.calls.arguments_of(tool) {
            return Some(known.clone());
        }
        let row = self.tools.catalogue.rows().iter().find(|row| row.name == tool)?;
        let schema = &row.tool.input_schema;
        let required = schema.get("required").and_then(serde_json::Value::as_array)?;
        (!required.is_empty()).then(|| example::arguments(schema))
    }

    /// Shows a view with its first pane focused, and lets it ask for what it needs.
    pub(super) fn show(&mut self, view: ViewId) -> Vec<AppEffect> {
        self.context.view = view;
        self.context.focus = view.panes()[0];
        self.context.is_zoomed = false;
        let (view, context) = self.active_view();
        view.enter(context)
    }
}
