//! Effects of trust on the console: the dialog's keys, and what is reloaded after the host was
//! replaced.

use crate::tui::event::AppEffect;
use crate::tui::event::trust::TrustEvent;
use crate::tui::keys::Action;
use crate::tui::state::{AppState, ConfigurationProblems};

impl AppState {
    /// Takes in the outcome of an effect about trust. After a switch everything that the old host told
    /// is asked for anew.
    pub(in crate::tui::state) fn handle_trust_event(
        &mut self,
        event: TrustEvent,
    ) -> Vec<AppEffect> {
        let is_another_host = matches!(event, TrustEvent::HostSwitched);
        let mut effects = self.trust.handle_event(event, &mut self.context);
        if is_another_host {
            self.configuration_problems = ConfigurationProblems::of(self.trust.diagnostics());
            self.servers.clear();
            self.tools.catalogue.forget_servers();
            effects.extend([AppEffect::ListDeclared, AppEffect::RefreshServers]);
            effects.extend(self.offerings.forget_servers());
            effects.extend(self.stats.refresh());
        }
        effects
    }

    pub(in crate::tui::state) fn handle_trust_action(&mut self, action: Action) -> Vec<AppEffect> {
        if let Some(effects) = self.trust.decide(action, &mut self.context) {
            return effects;
        }
        match action {
            Action::Quit => {
                // Whether to leave although calls run must be seen.
                self.trust.window = None;
                self.request_quit()
            }
            Action::Down
            | Action::Up
            | Action::PageDown
            | Action::PageUp
            | Action::Top
            | Action::Bottom
            | Action::Cancel
            | Action::Redraw
            | Action::Suspend => self.act_anywhere(action),
            _ => Vec::new(),
        }
    }
}
