//! Restoring the last run's state, and collecting what is saved for the next.

use std::collections::BTreeMap;

use super::{AppState, ToolSort, ViewId};
use crate::tui::event::AppEffect;
use crate::tui::event::persistence::PersistenceEvent;
use crate::tui::layout::PaneShares;
use crate::tui::persisted_state::{PersistedState, SavedColours};
use crate::tui::theme::ColourScheme;

/// Tracks what is saved for the next session.
#[derive(Debug, Default)]
pub struct PersistenceTracker {
    /// Whether the user did anything yet: an active user is not moved to another view.
    pub has_user_acted: bool,
    /// Whether the memory of the last run has come; before that nothing may be written over it.
    is_loaded: bool,
    /// The colours of the settings.
    configured: ColourScheme,
    /// The state that was written last, to write only changes.
    last_saved: PersistedState,
    /// How many calls were made until then.
    saved_call_count: u64,
}

impl AppState {
    /// Takes in the user's settings and the remembered state.
    pub(super) fn apply_persisted(&mut self, event: PersistenceEvent) -> Vec<AppEffect> {
        let PersistenceEvent { settings, persisted: memory, problems } = event;
        let memory = memory.unwrap_or_default();
        let look = &mut self.context.appearance;
        look.ascii |= settings.ascii;
        look.has_reduced_motion |= settings.reduced_motion;
        look.mouse |= settings.mouse;
        look.clock = !settings.has_no_clock;
        look.images = settings.images;
        self.persistence.configured = settings.theme.unwrap_or_default();
        look.palette = self.persistence.configured;
        if let Some(chosen) = &memory.theme
            && chosen.over == self.persistence.configured.name()
            && let Some(palette) = ColourScheme::from_name(&chosen.chosen)
        {
            look.palette = palette;
        }
        self.context.keys = settings.keys;
        for (view, shares) in &memory.panes {
            self.context.pane_shares.extend(ViewId::from_name(view).map(|view| (view, *shares)));
        }
        let kept = memory.arguments.iter();
        let kept = kept.map(|(tool, kept)| (tool.clone(), kept.arguments.clone()));
        self.context.calls.set_saved_arguments(kept.collect());
        self.persistence.is_loaded = true;
        self.persistence.last_saved = memory;
        let effects =
            if self.persistence.has_user_acted { Vec::new() } else { self.restore_view() };
        self.persistence.last_saved = self.place(self.persistence.last_saved.clone());
        if let Some(first) = problems.first() {
            let more = match problems.len() - 1 {
                0 => String::new(),
                more => format!("  ({more} more; ? shows all)"),
            };
            self.context.show_error(format!("{first}{more}"));
        }
        self.context.problems = problems;
        effects
    }

    fn restore_view(&mut self) -> Vec<AppEffect> {
        let memory = self.persistence.last_saved.clone();
        if let Some(sort) = ToolSort::from_title(&memory.sort) {
            self.tools.catalogue.sort_by(sort);
        }
        if !memory.filter.is_empty() {
            self.tools.find(&memory.filter);
            self.context.show_status(format!(
                "tools filtered by '{}'; Esc clears the filter",
                memory.filter
            ));
        }
        ViewId::from_name(&memory.view).map(|view| self.show(view)).unwrap_or_default()
    }

    /// The state to save, when it differs from the saved one.
    pub fn take_unsaved(&mut self) -> Option<PersistedState> {
        if !self.persistence.is_loaded {
            return None;
        }
        let made = self.context.calls.count();
        if made == self.persistence.saved_call_count
            && self.is_unchanged_from(&self.persistence.last_saved)
        {
            return None;
        }
        let before = std::mem::take(&mut self.persistence.last_saved);
        let mut memory = self.place(before);
        for call in self.context.calls.since(self.persistence.saved_call_count) {
            let row = self.tools.catalogue.find_by_name(&call.tool);
            // Only a schema tells what is secret.
            if let Some(row) = row {
                let schema = std::sync::Arc::clone(&row.tool.input_schema);
                memory.save_arguments(&call.tool, &call.arguments, Some(schema));
            }
        }
        self.persistence.saved_call_count = made;
        self.persistence.last_saved = memory.clone();
        Some(memory)
    }

    fn is_unchanged_from(&self, memory: &PersistedState) -> bool {
        memory.view == self.context.view.name()
            && memory.sort == self.tools.catalogue.sort.title()
            && memory.filter == self.filter()
            && memory.theme == self.colours()
            && memory.panes == self.pane_shares()
    }

    fn pane_shares(&self) -> BTreeMap<String, PaneShares> {
        self.context.pane_shares.iter().map(|(view, shares)| (view.name(), *shares)).collect()
    }

    /// The same memory, with where the console is now.
    fn place(&self, mut memory: PersistedState) -> PersistedState {
        memory.view = self.context.view.name();
        self.tools.catalogue.sort.title().clone_into(&mut memory.sort);
        self.filter().clone_into(&mut memory.filter);
        memory.theme = self.colours();
        memory.panes = self.pane_shares();
        memory
    }

    /// A filter that is still being written is not yet one.
    fn filter(&self) -> &str {
        let catalogue = &self.tools.catalogue;
        if catalogue.is_filtering { "" } else { catalogue.filter.text() }
    }

    fn colours(&self) -> Option<SavedColours> {
        let (chosen, configured) = (self.context.appearance.palette, self.persistence.configured);
        // Who chose what is set anyway chose nothing.
        (chosen != configured).then(|| SavedColours {
            chosen: chosen.name().to_owned(),
            over: configured.name().to_owned(),
        })
    }
}
