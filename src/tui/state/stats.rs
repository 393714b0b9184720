//! Statistics, live.

use super::{Pane, Shell, Stage};
use crate::tui::event::Effect;
use crate::tui::keys::{Action, When};

/// Statistics, live.
#[derive(Debug, Default)]
pub struct Stats {}

impl Stage for Stats {
    fn act(&mut self, _action: Action, _shell: &mut Shell) -> Option<Vec<Effect>> {
        None
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        vec![When::Stats, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, _focus: Pane, _by: isize) {}
}
