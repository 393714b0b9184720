//! The statistics store: counts in one `SQLite` file.

mod columns;
mod fold;
mod open;
mod query;
mod retention;
mod schema;

use rusqlite::{Connection, ErrorCode};

use crate::model::Error;
use crate::util::append::RecordLocation;
use crate::util::database;

pub(super) use open::{StoreFileStatus, inspect, move_aside, open, remove_stale_drafts};
pub(super) use query::{Grain, GrainSink};

#[derive(Debug)]
pub(super) struct StatsStore {
    db: Connection,
    /// Why nothing may be written, when that is so.
    pub(super) read_only: Option<String>,
}

/// Why something could not be done with the store.
#[derive(Debug, Clone)]
pub(super) enum StoreError {
    /// Others held its lock for as long as was waited.
    Busy,
    /// It is no store, or not a whole one any more.
    Damaged(String),
    /// The system, the disk or the file does not let it.
    Failed(String),
    /// It must not be used.
    Refused(Error),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if database::is_busy(&error) {
            return Self::Busy;
        }
        if database::is_corrupt(&error) {
            return Self::Damaged(error.to_string());
        }
        Self::Failed(match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
            Some(ErrorCode::SystemIoFailure) => {
                format!("{error} (the disk may be full, or a file size limit was reached)")
            }
            _ => error.to_string(),
        })
    }
}

impl StoreError {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Busy => "is locked by another process".to_owned(),
            Self::Damaged(why) => format!("is damaged: {why}"),
            Self::Failed(why) => format!("cannot be used: {why}"),
            Self::Refused(error) => error.message().to_owned(),
        }
    }

    pub(super) fn into_error(self, store: &RecordLocation) -> Error {
        let path = store.path.display();
        let text = format!("the statistics store {path} {}", self.describe());
        match self {
            Self::Busy => {
                Error::unreachable(text).with_hint("try again when the other process has finished")
            }
            Self::Damaged(_) => Error::protocol(text).with_hint(format!("move {path} away")),
            Self::Failed(_) => {
                Error::unreachable(text).with_hint("check its owner, mode, directory and disk")
            }
            Self::Refused(error) => error,
        }
    }
}
