//! The engines that entries use: those of one place share one, as long as any of them is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use secrecy::ExposeSecret as _;

use super::Engine;
use super::config::EngineLocation;
use super::disk::SqliteEngine;
use crate::util::clock::{Clock, SystemClock};

#[derive(Default)]
pub(super) struct OpenEngines(Mutex<BTreeMap<String, Weak<Arc<dyn Engine>>>>);

/// An entry's share of an engine. Whoever gives back the last one closes the engine.
pub(super) type EngineLease = Arc<Arc<dyn Engine>>;

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
        open.get(&identity).and_then(Weak::upgrade).unwrap_or_else(|| {
            let lease = Arc::new(new_engine(location, component));
            open.insert(identity, Arc::downgrade(&lease));
            lease
        })
    }
}

#[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "only Redis stores several"))]
fn new_engine(location: &EngineLocation, component: &str) -> Arc<dyn Engine> {
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
