//! The command line: parses arguments and prints pages.
//!
//! Owns: the grammar of commands, what each prints, the questions asked on a terminal. One file in
//! `commands` for each command; `output` writes what [`crate::present`] shows. Never does: reach a tool or a server except through [`crate::host::ToolHost`].

pub mod ad_hoc;
pub mod answers;
pub mod args;
pub mod background_host;
pub mod call_context;
pub mod commands;
pub mod complete;
pub mod config_watch;
pub mod context;
pub mod curl;
pub mod entry_checks;
mod entry_edit;
pub mod formats;
pub mod grammar;
pub mod host_sockets;
pub mod json;
pub mod log;
pub mod login;
pub mod mcp_file;
pub mod options;
pub mod output;
pub mod pin_selection;
pub mod progress;
pub mod prompt;
pub mod questionnaire;
pub mod raw_arguments;
pub mod records;
pub mod save;
pub mod shells;
pub mod signals;
pub mod trace;
pub mod usage;
