//! What the console shows: each view with its state, keys, tasks and drawing.

pub mod bench;
pub mod form;
pub mod history;
pub mod inbox;
pub mod offerings;
pub mod overlays;
pub mod pins;
pub mod result;
pub mod servers;
pub mod stats;
pub mod tools;
pub mod trace;
pub mod trust;
