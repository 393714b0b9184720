//! One file for each command: its arguments, whose doc comments are the help, and what it does.

pub mod audit;
pub mod call;
pub mod completions;
pub mod config;
pub mod history;
pub mod inspect;
pub mod list;
pub mod pin;
pub mod servers;
pub mod trust;
pub mod verify;
