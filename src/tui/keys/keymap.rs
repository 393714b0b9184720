//! The keymap: the default tables with the user's changes.

use super::{Action, Binding, KEY_TABLES, KeyContext, KeyPress};

/// The keys of every context.
#[derive(Debug, Clone)]
pub struct Keymap {
    contexts: Vec<(KeyContext, Vec<Binding>)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let places =
            KEY_TABLES.iter().map(|place| (place.context, place.bindings.to_vec())).collect();
        Self { contexts: places }
    }
}

impl Keymap {
    pub fn bindings(&self, when: KeyContext) -> &[Binding] {
        let place = self.contexts.iter().find(|(place, _)| *place == when);
        place.map_or(&[], |(_, bindings)| bindings)
    }

    pub(super) fn bindings_mut(&mut self, when: KeyContext) -> Option<&mut Vec<Binding>> {
        let place = self.contexts.iter_mut().find(|(place, _)| *place == when);
        place.map(|(_, bindings)| bindings)
    }

    pub fn action(&self, key: KeyPress, places: &[KeyContext]) -> Option<Action> {
        places.iter().find_map(|place| {
            self.bindings(*place).iter().find(|binding| binding.key == key).map(|b| b.action)
        })
    }

    pub fn key_of(&self, action: Action, places: &[KeyContext]) -> Option<KeyPress> {
        places.iter().find_map(|place| {
            let mut own = self.bindings(*place).iter().filter(|b| b.action == action);
            own.find(|b| self.action(b.key, places) == Some(action)).map(|b| b.key)
        })
    }
}
