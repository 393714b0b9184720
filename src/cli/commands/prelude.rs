//! What most commands use: their options, their context, and what they print.

pub(super) use std::path::{Path, PathBuf};
pub(super) use std::sync::Arc;
pub(super) use std::time::Duration;

pub(super) use clap::{Args, Subcommand, ValueEnum};
pub(super) use clap_complete::ArgValueCompleter;

pub(super) use crate::cli::ad_hoc::ServerCommandArgs;
pub(super) use crate::cli::context::{CommandContext, CommandResult, StartScope};
pub(super) use crate::cli::output::{CommandError, Format, Output, conclude};
pub(super) use crate::cli::{complete, entry_checks, formats, prompt, server_target};
pub(super) use crate::model::Error;
pub(super) use crate::present::{self, Line, Page, Role, Table, TableColumn, plural};
