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

    /// What the key does in these places, the nearest first.
    pub fn action(&self, key: Key, places: &[When]) -> Option<Action> {
        places.iter().find_map(|place| {
            self.bindings(*place).iter().find(|binding| binding.key == key).map(|b| b.action)
        })
    }

    /// The key of an action in these places, the nearest first.
    pub fn key_of(&self, action: Action, places: &[When]) -> Option<Key> {
        places.iter().find_map(|place| {
            self.bindings(*place).iter().find(|b| b.action == action).map(|b| b.key)
        })
    }
}
