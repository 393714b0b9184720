//! What the benchmark wants done, and what comes of it.

use std::path::PathBuf;
use std::time::Duration;

use crate::bench::account::Account;
use crate::bench::plan::Plan;
use crate::bench::seen::Seen;
use crate::bench::threshold::Threshold;
use crate::model::{Fault, JsonObject};

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// Make a run; at most one goes on at a time.
    Start {
        /// Its number.
        run: u64,
        /// What it is to do.
        order: Box<Order>,
    },
    /// Make no calls for now, or go on.
    Pause(bool),
    /// End the run and keep what was measured.
    Stop,
    /// Write a run to a file that later ones are compared with. Only what is such a run itself is
    /// replaced.
    Keep {
        /// Relative to where the console was opened.
        path: PathBuf,
        /// The run.
        text: String,
    },
}

/// What a run is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Its tools, by full name, with their arguments: one, or two that are compared.
    pub targets: Vec<(String, JsonObject)>,
    /// When calls are made.
    pub plan: Plan,
    /// Overrides every configured timeout.
    pub timeout: Option<Duration>,
    /// Call even what would ask a person first, or says that it changes something.
    pub allow_writes: bool,
    /// What must not be true of it.
    pub thresholds: Vec<Threshold>,
    /// The file of the run that it is compared with.
    pub baseline: Option<PathBuf>,
    /// The share by which it may be worse than that.
    pub max_regression: Option<f64>,
}

/// What came of it.
#[derive(Debug)]
pub enum News {
    /// The tools were found; calls are made from now on.
    Began {
        /// Which run.
        run: u64,
        /// What a person should know before.
        warnings: Vec<String>,
    },
    /// It goes on.
    Seen {
        /// Which run.
        run: u64,
        /// What was seen of it.
        seen: Box<Seen>,
    },
    /// It is over.
    Ended {
        /// Which run.
        run: u64,
        /// What was seen of it last.
        seen: Box<Seen>,
        /// What became of it; `Err` when no call could be made at all.
        outcome: Box<Result<Account, Fault>>,
    },
    /// A run was written to be compared with.
    Kept(PathBuf),
}
