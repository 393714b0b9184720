//! The engines that entries use, and when each ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use secrecy::ExposeSecret as _;

use super::Engine;
use super::config::EngineLocation;
use super::disk::SqliteEngine;
use crate::util::clock::{Clock, SystemClock};

#[derive(Default)]
pub(super) struct OpenEngines(Mutex<BTreeMap<String, Weak<CountedEngine>>>);

struct CountedEngine {
    engine: Arc<dyn Engine>,
    /// How many leases there are; none is added to an engine that has none any more.
    leases: AtomicUsize,
}

pub(super) struct EngineLease {
    counted: Arc<CountedEngine>,
    is_released: AtomicBool,
}

impl OpenEngines {
    /// The engine for a place; `component` names what entries of the kind `kind` keep there.
    pub(super) fn lease(
        &self,
        kind: &str,
        location: &EngineLocation,
        component: &str,
    ) -> EngineLease {
        let identity = match location {
            EngineLocation::Memory => format!("{kind} memory {component}"),
            EngineLocation::Disk(file) => format!("{kind} disk {file:?}"),
            EngineLocation::Redis { url, .. } => {
                format!("{kind} redis {component} {}", url.expose_secret())
            }
        };
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, engine| engine.strong_count() > 0);
        let existing =
            open.get(&identity).and_then(Weak::upgrade).filter(|existing| existing.add_lease());
        let counted = existing.unwrap_or_else(|| {
            let engine = open_engine(location, component);
            let counted = Arc::new(CountedEngine { engine, leases: AtomicUsize::new(1) });
            open.insert(identity, Arc::downgrade(&counted));
            counted
        });
        EngineLease { counted, is_released: AtomicBool::new(false) }
    }
}

#[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "only Redis stores several"))]
fn open_engine(location: &EngineLocation, component: &str) -> Arc<dyn Engine> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    match location {
        EngineLocation::Disk(file) => Arc::new(SqliteEngine::new(Some(file.clone()), clock)),
        #[cfg(feature = "redis")]
        EngineLocation::Redis { url, host } => {
            let (url, host) = (url.clone(), host.clone());
            Arc::new(super::remote::RedisEngine::new(url, host, component, clock))
        }
        _ => Arc::new(SqliteEngine::new(None, clock)),
    }
}

impl CountedEngine {
    fn add_lease(&self) -> bool {
        let add = |leases: usize| (leases > 0).then(|| leases + 1);
        self.leases.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

impl EngineLease {
    pub(super) fn engine(&self) -> &dyn Engine {
        self.counted.engine.as_ref()
    }

    pub(super) async fn close(&self) {
        if self.is_last_release() {
            self.engine().close().await;
        }
    }

    fn is_last_release(&self) -> bool {
        !self.is_released.swap(true, Ordering::Relaxed)
            && self.counted.leases.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

impl Drop for EngineLease {
    fn drop(&mut self) {
        // Of a reading that was refused: an engine that only it had is dropped with it.
        self.is_last_release();
    }
}
