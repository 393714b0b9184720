//! What trust means for the rest of the console: its keys while the question has them all, and
//! everything that is asked for anew after the host was replaced.

use crate::tui::event::Effect;
use crate::tui::event::trust::News;
use crate::tui::keys::Action;
use crate::tui::state::State;

impl State {
    /// Takes in what came of a wish about trust. After a switch everything that the old host told
    /// is asked for anew.
    pub(in crate::tui::state) fn trust_news(&mut self, news: News) -> Vec<Effect> {
        let is_another_host = matches!(news, News::Switched);
        let mut effects = self.trust.hear(news, &mut self.shell);
        if is_another_host {
            self.servers.forget();
            self.tools.catalogue.forget_servers();
            effects.extend([Effect::ListDeclared, Effect::LookAtServers]);
            effects.extend(self.offers.forget_servers());
            effects.extend(self.stats.look());
        }
        effects
    }

    /// Does what a key stands for while the project is asked about.
    pub(in crate::tui::state) fn act_on_trust(&mut self, action: Action) -> Vec<Effect> {
        if let Some(effects) = self.trust.decide(action, &mut self.shell) {
            return effects;
        }
        match action {
            Action::Quit => {
                // Whether to leave although calls run must be seen.
                self.trust.window = None;
                self.leave()
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
