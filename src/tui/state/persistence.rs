//! The settings of `console.yaml`, and the last arguments of tools from the history.

use super::AppState;
use crate::tui::event::persistence::PersistenceEvent;

impl AppState {
    pub(super) fn apply_persisted(&mut self, event: PersistenceEvent) {
        let PersistenceEvent { settings, arguments, problems } = event;
        let look = &mut self.context.appearance;
        look.ascii |= settings.ascii;
        look.has_reduced_motion |= settings.reduced_motion;
        look.mouse |= settings.mouse;
        look.clock = !settings.has_no_clock;
        look.images = !settings.has_no_images;
        look.palette = settings.theme.unwrap_or_default();
        self.context.keys = settings.keys;
        self.context.calls.set_saved_arguments(arguments);
        if let Some(first) = problems.first() {
            let more = match problems.len() - 1 {
                0 => String::new(),
                more => format!("  ({more} more; ? shows all)"),
            };
            self.context.show_error(format!("{first}{more}"));
        }
        self.context.problems = problems;
    }
}
