//! Exports of a run in the formats of other programs.

pub mod csv;
pub mod locust;
pub mod markdown;

use super::json::{PERCENTILES, millis};
