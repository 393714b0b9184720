//! A class whose methods are tools.

use std::time::Duration;

use serde::Serialize;

use crate::model::JsonObject;

/// How long a constructor may take when the entry does not say.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A class whose methods are tools; one instance serves all calls of a worker. Serialized it is the
/// part of a request that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PythonClass {
    /// Its name in the module; a dotted one leads through another class.
    #[serde(rename = "class")]
    pub(super) name: String,
    pub(super) config: JsonObject,
    pub(super) methods: Option<Vec<String>>,
    /// How long its constructor may take, in seconds.
    #[serde(serialize_with = "seconds")]
    pub(super) start_timeout: Duration,
}

fn seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_secs_f64())
}
