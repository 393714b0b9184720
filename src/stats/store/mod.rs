//! The store: counts in one `SQLite` file.
//!
//! Owns: the file (`open`), what is inside, folding a part of the spool into it in one transaction
//! with the position that was read to (`fold`), what is let go with age (`retention`), reading
//! (`query`). Never does: decide what to do when it cannot be used; [`Trouble`] says what it is.

mod fold;
mod layout;
mod open;
mod query;
mod retention;

use rusqlite::{Connection, ErrorCode};

use crate::model::Fault;
use crate::util::append::Location;
use crate::util::database;

pub(super) use open::{Found, look, move_aside, open, sweep};
pub(super) use query::{Grain, Sink};

/// An open store.
#[derive(Debug)]
pub(super) struct Store {
    db: Connection,
    /// Why nothing may be written, when that is so.
    pub(super) read_only: Option<String>,
}

/// Why something could not be done with the store.
#[derive(Debug, Clone)]
pub(super) enum Trouble {
    /// Others held its lock for as long as was waited.
    Busy,
    /// It is no store, or not a whole one any more.
    Damaged(String),
    /// The system, the disk or the file does not let it.
    Failed(String),
    /// It must not be used.
    Refused(Fault),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        if database::is_busy(&error) {
            return Self::Busy;
        }
        if database::is_damage(&error) {
            return Self::Damaged(error.to_string());
        }
        Self::Failed(match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
            Some(ErrorCode::SystemIoFailure) => {
                format!("{error} (the disk may be full, or a limit on the size of files reached)")
            }
            _ => error.to_string(),
        })
    }
}

impl Trouble {
    /// What it is, in words that follow the path of the store.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Busy => "is locked by somebody else".to_owned(),
            Self::Damaged(why) => format!("is damaged: {why}"),
            Self::Failed(why) => format!("cannot be used: {why}"),
            Self::Refused(fault) => fault.message().to_owned(),
        }
    }

    /// The fault of a command that needs the store.
    pub(super) fn fault(self, store: &Location) -> Fault {
        let path = store.path.display();
        let words = format!("the store of statistics {path} {}", self.words());
        match self {
            Self::Busy => {
                Fault::unreachable(words).hint("try again when the other process is done")
            }
            Self::Damaged(_) => Fault::protocol(words).hint(format!("move {path} away")),
            Self::Failed(_) => Fault::unreachable(words)
                .hint("its owner, its mode, its directory or the disk does not allow it"),
            Self::Refused(fault) => fault,
        }
    }
}
