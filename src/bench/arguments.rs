//! The arguments of the calls of a run: the same for all, or rows of a file.

use std::sync::Arc;

use crate::host::load::LoadTarget;
use crate::host::request::CallArguments;
use crate::model::{Error, JsonObject};

/// Used in order, then from the start again; at least one.
#[derive(Debug, Clone)]
pub struct ArgumentRows(Vec<Arc<JsonObject>>);

impl ArgumentRows {
    pub async fn check(rows: Vec<JsonObject>, target: &LoadTarget) -> Result<Self, Error> {
        let mut encoded = Vec::with_capacity(rows.len());
        for (number, row) in (1..).zip(rows) {
            let row = target.check_arguments(CallArguments::Object(row)).await;
            encoded.push(Arc::new(row.map_err(|error| error.context(&format!("row {number}")))?));
        }
        if encoded.is_empty() {
            return Err(Error::usage("there are no rows of arguments"));
        }
        Ok(Self(encoded))
    }

    pub fn of_call(&self, number: u64) -> &Arc<JsonObject> {
        let at = number % self.0.len() as u64;
        &self.0[usize::try_from(at).unwrap_or_default()]
    }

    pub fn objects(&self) -> impl Iterator<Item = &JsonObject> {
        self.0.iter().map(|row| &**row)
    }
}

impl From<JsonObject> for ArgumentRows {
    fn from(row: JsonObject) -> Self {
        Self(vec![Arc::new(row)])
    }
}
