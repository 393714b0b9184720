//! What the providers of one host share beyond one build of their kind.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One value of each type, made when a kind first asks for it. It outlives a build, so that entries
/// that are read again find what runs already: engines of stores, Python interpreters.
#[derive(Clone, Default)]
pub struct SharedState(Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl SharedState {
    /// The value of this type.
    pub fn get_or_init<T: Any + Send + Sync>(&self, init: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = values.get(&TypeId::of::<T>()).cloned();
        known.and_then(|value| value.downcast::<T>().ok()).unwrap_or_else(|| {
            let value = Arc::new(init());
            values.insert(TypeId::of::<T>(), Arc::clone(&value) as _);
            value
        })
    }
}
