//! Locks whose holder may have panicked, and a value that is replaced as a whole while others read it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Locks also what a panic left behind: no holder leaves its data half changed.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value that holds at the moment. Readers keep the one they got, however often it is replaced.
#[derive(Debug, Default)]
pub struct Current<T: ?Sized>(RwLock<Arc<T>>);

impl<T: ?Sized> Current<T> {
    pub fn new(value: impl Into<Arc<T>>) -> Self {
        Self(RwLock::new(value.into()))
    }

    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn replace(&self, value: impl Into<Arc<T>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value.into();
    }
}
