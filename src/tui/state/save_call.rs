//! The window in which a user names a call, to repeat it with `toolhost run NAME`.

use super::{AppContext, LineInput, Overlay};
use crate::model::{JsonObject, check_name};
use crate::tui::event::AppEffect;
use crate::tui::event::tools::ToolsEffect;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SaveCallWindow {
    pub name: LineInput,
    pub tool: String,
    pub arguments: JsonObject,
    /// Why the typed name cannot be used; `None` until Enter found something.
    pub error: Option<String>,
}

impl SaveCallWindow {
    pub fn of(tool: &str, arguments: JsonObject) -> Self {
        Self { tool: tool.to_owned(), arguments, ..Self::default() }
    }
}

impl AppContext {
    /// Saves the call that is being named, and closes its window; a name that cannot be used is
    /// said in the window.
    pub(super) fn save_named_call(&mut self) -> Vec<AppEffect> {
        let Some(Overlay::SaveCall(window)) = &mut self.overlay else { return Vec::new() };
        let name = window.name.text().trim();
        if check_name(name).is_err() {
            window.error = Some("use letters, digits, '_', '.' and '-'".to_owned());
            return Vec::new();
        }
        let effect = ToolsEffect::SaveCall {
            name: name.to_owned(),
            tool: std::mem::take(&mut window.tool),
            arguments: std::mem::take(&mut window.arguments),
        };
        self.overlay = None;
        vec![AppEffect::Tools(effect)]
    }
}
