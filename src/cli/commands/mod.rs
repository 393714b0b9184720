//! One file for each command: its arguments, whose doc comments are the help, and what it does.

pub mod audit;
pub mod auth;
pub mod call;
pub mod completions;
pub mod config;
pub mod history;
pub mod inspect;
pub mod list;
pub mod servers;
pub mod trust;
