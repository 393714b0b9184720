//! The benchmark: what is to be run, the run, what it showed.

use super::{Pane, Shell, Stage};
use crate::tui::event::Effect;
use crate::tui::keys::{Action, When};

/// The benchmark: what is to be run, the run, what it showed.
#[derive(Debug, Default)]
pub struct Bench {}

impl Stage for Bench {
    fn act(&mut self, _action: Action, _shell: &mut Shell) -> Option<Vec<Effect>> {
        None
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        vec![When::Bench, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, _focus: Pane, _by: isize) {}
}
