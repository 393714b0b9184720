//! What all views have in common, so that the console knows what to ask of any of them.

use super::{Form, Line, Pane, Shell, Text};
use crate::tui::event::Effect;
use crate::tui::keys::{Action, When};

/// A view, as the state sees it.
pub trait Stage {
    /// Does what a key stands for; `None` when that means nothing here.
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>>;

    /// Where keys are looked up, the nearest place first.
    fn places(&self, focus: Pane) -> Vec<When>;

    /// So many lines on in a pane; back when negative.
    fn scroll(&mut self, focus: Pane, by: isize);

    /// It is shown now.
    fn enter(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        Vec::new()
    }

    /// The text that is being written, if one is.
    fn line(&mut self, _focus: Pane) -> Option<&mut Line> {
        None
    }

    /// That text was changed.
    fn rewritten(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        Vec::new()
    }

    /// The form that is filled in, if one is: it can be checked, and written in an editor.
    fn form(&self, _focus: Pane) -> Option<&Form> {
        None
    }

    /// The same, to be filled in.
    fn form_mut(&mut self, _focus: Pane) -> Option<&mut Form> {
        None
    }

    /// The text of several lines that is being written, if one is.
    fn text(&mut self, focus: Pane) -> Option<&mut Text> {
        self.form_mut(focus).and_then(Form::text)
    }

    /// It is so late; only told while the view is shown.
    fn tick(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        Vec::new()
    }

    /// A row of a pane was pointed at with the mouse, counted from 0; the pane has so many.
    fn point(&mut self, _pane: Pane, _row: usize, _height: usize) {}

    /// Whether a person lets it hold still.
    fn is_paused(&self) -> bool {
        false
    }

    /// Whether it changes by itself, so that it has to hear what time it is.
    fn is_moving(&self) -> bool {
        false
    }
}
