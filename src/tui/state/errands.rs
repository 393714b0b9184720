//! What one view asks of another.

use super::{State, View};
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
            // These views take it up when they know what to do with it.
            Errand::Bench { .. } => self.show(View::Bench),
            Errand::ShowHistory(tool) => {
                self.history.look_for(&tool);
                self.show(View::History)
            }
        }
    }

    fn show_trace(&mut self, words: &str) -> Vec<Effect> {
        self.trace.find(words);
        self.show(View::Trace)
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
