//! The trait that all views implement.

use super::{AppContext, LineInput, Pane, SchemaForm, TextArea};
use crate::tui::event::AppEffect;
use crate::tui::keys::{Action, KeyContext};

pub trait View {
    /// Performs an action; `None` when the view has no use for it.
    fn act(&mut self, action: Action, context: &mut AppContext) -> Option<Vec<AppEffect>>;

    fn key_contexts(&self, focus: Pane) -> Vec<KeyContext>;

    /// Scrolls a pane by this many lines; negative moves up.
    fn scroll(&mut self, focus: Pane, by: isize);

    fn enter(&mut self, _context: &mut AppContext) -> Vec<AppEffect> {
        Vec::new()
    }

    /// The text that is being written, if one is.
    fn line(&mut self, _focus: Pane) -> Option<&mut LineInput> {
        None
    }

    fn on_text_changed(&mut self, _context: &mut AppContext) -> Vec<AppEffect> {
        Vec::new()
    }

    /// The form that is filled in, if one is: it can be checked, and written in an editor.
    fn form(&self, _focus: Pane) -> Option<&SchemaForm> {
        None
    }

    fn form_mut(&mut self, _focus: Pane) -> Option<&mut SchemaForm> {
        None
    }

    /// The text of several lines that is being written, if one is.
    fn text(&mut self, focus: Pane) -> Option<&mut TextArea> {
        self.form_mut(focus).and_then(SchemaForm::text)
    }

    /// Takes in the current time; only called while the view is shown.
    fn tick(&mut self, _context: &mut AppContext) -> Vec<AppEffect> {
        Vec::new()
    }

    /// A row of a pane was pointed at with the mouse, counted from 0; the pane has so many.
    fn on_click(&mut self, _pane: Pane, _row: usize, _height: usize) {}

    fn is_paused(&self) -> bool {
        false
    }

    fn is_animating(&self) -> bool {
        false
    }
}
