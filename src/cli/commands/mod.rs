//! One file for each command: its arguments, whose doc comments are the help, and what it does.

pub mod audit;
pub mod auth;
pub mod bench;
pub mod call;
pub mod complete;
pub mod completions;
pub mod config;
pub mod dispatch;
pub mod down;
pub mod export;
pub mod history;
pub mod inspect;
pub mod list;
pub mod pin;
pub mod prompts;
pub mod ps;
pub mod record;
pub mod replay;
pub mod resources;
pub mod serve;
pub mod servers;
pub mod stats;
pub mod trace;
pub mod trust;
pub mod up;
pub mod verify;
