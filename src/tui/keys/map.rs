//! The map: the tables as a person may have changed them.

use super::{Action, Binding, Key, PLACES, When};

/// Which key does what, where.
#[derive(Debug, Clone)]
pub struct Keymap {
    places: Vec<(When, Vec<Binding>)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let places = PLACES.iter().map(|place| (place.when, place.bindings.to_vec())).collect();
        Self { places }
    }
}

impl Keymap {
    /// What holds in a place, the most important first.
    pub fn bindings(&self, when: When) -> &[Binding] {
        let place = self.places.iter().find(|(place, _)| *place == when);
        place.map_or(&[], |(_, bindings)| bindings)
    }

    pub(super) fn bindings_mut(&mut self, when: When) -> Option<&mut Vec<Binding>> {
        let place = self.places.iter_mut().find(|(place, _)| *place == when);
        place.map(|(_, bindings)| bindings)
    }

    /// What the key does in these places, the nearest first.
    pub fn action(&self, key: Key, places: &[When]) -> Option<Action> {
        places.iter().find_map(|place| {
            self.bindings(*place).iter().find(|binding| binding.key == key).map(|b| b.action)
        })
    }

    /// The key of an action in these places, the nearest first.
    pub fn key_of(&self, action: Action, places: &[When]) -> Option<Key> {
        places.iter().find_map(|place| {
            let mut own = self.bindings(*place).iter().filter(|b| b.action == action);
            own.find(|b| self.action(b.key, places) == Some(action)).map(|b| b.key)
        })
    }
}
