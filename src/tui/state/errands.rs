//! What one view asks of another.

use super::{State, View};
use crate::host::example;
use crate::model::JsonObject;
use crate::tui::event::{Effect, Errand};

impl State {
    /// Does what is done here; gives what is left to be done outside.
    pub(super) fn settle(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        let mut left = Vec::new();
        for effect in effects {
            match effect {
                Effect::Go(errand) => {
                    let more = self.go(errand);
                    left.extend(self.settle(more));
                }
                other => left.push(other),
            }
        }
        left
    }

    fn go(&mut self, errand: Errand) -> Vec<Effect> {
        match errand {
            Errand::Fill { tool, arguments } => {
                let effects = self.show(View::Tools);
                self.tools.fill_named(&tool, arguments.as_ref(), &mut self.shell);
                effects
            }
            Errand::Call { tool, arguments } => {
                let mut effects = self.show(View::Tools);
                self.tools.choose(&tool);
                effects.push(self.tools.call(tool, arguments, &mut self.shell));
                effects
            }
            Errand::ShowTool(tool) => {
                let effects = self.show(View::Tools);
                if !self.tools.choose(&tool) {
                    self.shell.say_bad(format!("{tool} is not in the catalogue"));
                }
                effects
            }
            Errand::ShowTools(server) => {
                let effects = self.show(View::Tools);
                self.tools.find(&format!("src:{server} "));
                effects
            }
            Errand::ShowTrace(server) => self.show_trace(&format!("srv:={server} ")),
            Errand::ShowCall(call) => self.show_trace(&format!("call:{} ", call.0)),
            Errand::ShowHistory(tool) => {
                self.history.look_for(&tool);
                self.show(View::History)
            }
            Errand::AskTrust => {
                self.trust.open(&mut self.shell);
                Vec::new()
            }
            Errand::Bench { tool, arguments } => {
                let arguments = arguments.or_else(|| self.usual_arguments(&tool));
                let effects = self.show(View::Bench);
                self.bench.put(&tool, arguments.as_ref());
                effects
            }
            Errand::BenchOn { side, tool } => {
                let arguments = self.usual_arguments(&tool);
                self.bench.form.put(side, &tool, arguments.as_ref());
                Vec::new()
            }
            Errand::ChooseTool(side) => {
                let rows = self.tools.catalogue.rows().to_vec();
                self.bench.choose_of(side, rows, &mut self.shell);
                Vec::new()
            }
        }
    }

    fn show_trace(&mut self, words: &str) -> Vec<Effect> {
        self.trace.find(words);
        self.show(View::Trace)
    }

    /// What a tool was called with last, or an example when it requires something.
    fn usual_arguments(&self, tool: &str) -> Option<JsonObject> {
        if let Some(known) = self.shell.calls.arguments_of(tool) {
            return Some(known.clone());
        }
        let row = self.tools.catalogue.rows().iter().find(|row| row.name == tool)?;
        let schema = &row.tool.input_schema;
        let required = schema.get("required").and_then(serde_json::Value::as_array)?;
        (!required.is_empty()).then(|| example::arguments(schema))
    }

    /// Shows a view.
    pub(super) fn show(&mut self, view: View) -> Vec<Effect> {
        self.shell.view = view;
        self.shell.focus = view.panes()[0];
        self.shell.is_zoomed = false;
        let (stage, shell) = self.stage();
        stage.enter(shell)
    }
}
