//! What crosses the wires.

use super::{Pane, Shell, Stage};
use crate::tui::event::Effect;
use crate::tui::keys::{Action, When};

/// What crosses the wires.
#[derive(Debug, Default)]
pub struct Trace {}

impl Stage for Trace {
    fn act(&mut self, _action: Action, _shell: &mut Shell) -> Option<Vec<Effect>> {
        None
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        vec![When::Trace, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, _focus: Pane, _by: isize) {}
}
