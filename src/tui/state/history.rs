//! The calls of the past.

use super::{Pane, Shell, Stage};
use crate::tui::event::Effect;
use crate::tui::keys::{Action, When};

/// The calls of the past.
#[derive(Debug, Default)]
pub struct History {}

impl Stage for History {
    fn act(&mut self, _action: Action, _shell: &mut Shell) -> Option<Vec<Effect>> {
        None
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        vec![When::History, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, _focus: Pane, _by: isize) {}
}
