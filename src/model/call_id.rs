//! The identity of a call.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The identity of one call, in every record of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallId(pub Arc<str>);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
