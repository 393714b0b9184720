//! What servers offer beside tools: resources and prompts.

use super::{Pane, Shell, Stage};
use crate::tui::event::Effect;
use crate::tui::keys::{Action, When};

/// What servers offer beside tools: resources and prompts.
#[derive(Debug, Default)]
pub struct Offers {}

impl Stage for Offers {
    fn act(&mut self, _action: Action, _shell: &mut Shell) -> Option<Vec<Effect>> {
        None
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        vec![When::Offers, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, _focus: Pane, _by: isize) {}
}
