//! The location of the statistics: the store, and the spool beside it.

use std::path::{Path, PathBuf};

use super::spool;
use crate::util::append::RecordLocation;

pub const STORE: &str = "stats.db";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsLocation {
    pub store: RecordLocation,
    pub spool: RecordLocation,
}

impl StatsLocation {
    pub fn own(state_dir: &Path) -> Self {
        Self {
            store: RecordLocation::own(state_dir, STORE),
            spool: RecordLocation::own(state_dir, spool::FILE),
        }
    }

    /// At a path that a person named for the store. The spool has the same name, ending in
    /// `.spool`; a path that ends so itself names the spool of a store that ends in `.db`.
    pub fn named(path: PathBuf) -> Self {
        let spool = path.with_extension("spool");
        let store = if spool == path { path.with_extension("db") } else { path };
        Self { store: RecordLocation::named(store), spool: RecordLocation::named(spool) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_store_has_its_spool_beside_it() {
        for (path, store, spool) in [
            ("/x/calls.db", "/x/calls.db", "/x/calls.spool"),
            ("/x/calls", "/x/calls", "/x/calls.spool"),
            ("/x/calls.spool", "/x/calls.db", "/x/calls.spool"),
        ] {
            let location = StatsLocation::named(PathBuf::from(path));
            assert_eq!((location.store.path, location.spool.path), (store.into(), spool.into()));
        }
    }
}
