//! The statistics of this user: folding the spool, and queries.
//!
//! Owns: what happens when the store cannot be used. A damaged one is moved away and started again;
//! of one that is locked, full, read-only or newer what is there is read, and what was not folded
//! is shown from the spool. Never does: wait longer than allowed, lose a line of the spool.

use std::time::Duration;

use super::count::{SpoolBatch, ToolKey};
use super::granularity::{GrainRange, RetentionBounds};
use super::location::StatsLocation;
use super::spool_reader::{self, SpoolFile, SpoolPositions};
use super::store::{self, GrainSink, StatsStore, StoreError, StoreFileStatus};
use super::summary::{
    self, Summary, TimeSeries, TimeSeriesSet, TimeSeriesTally, TimeSlice, UsageTally,
};
use crate::model::{CallFilter, Error};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBudget {
    pub lock_timeout: Duration,
    /// How many parts of the spool are folded, of [`spool_reader::CHUNK`] bytes each.
    pub max_chunks: usize,
}

impl ReadBudget {
    /// Five seconds, and everything is folded: for commands that show statistics.
    pub const FULL: Self = Self { lock_timeout: Duration::from_secs(5), max_chunks: usize::MAX };

    /// A moment, and one part: for commands that show statistics beside something else.
    pub const BRIEF: Self = Self { lock_timeout: Duration::from_millis(200), max_chunks: 1 };
}

#[derive(Debug)]
pub struct Statistics {
    location: StatsLocation,
    retention: Duration,
    budget: ReadBudget,
    store: Option<StatsStore>,
    /// Which file the store is.
    opened: Option<u64>,
    /// What was read of the spool and could not be folded.
    unfolded: SpoolBatch,
    /// The spool holds more than was read.
    is_behind: bool,
    last_seen_files: Vec<(String, u64)>,
    pruned: bool,
    notes: Vec<String>,
    last_note: Option<String>,
}

impl Statistics {
    /// Names the place; nothing is opened yet. What is older than `retention` is let go.
    pub fn new(location: StatsLocation, retention: Duration, budget: ReadBudget) -> Self {
        Self {
            location,
            retention,
            budget,
            store: None,
            opened: None,
            unfolded: SpoolBatch::default(),
            is_behind: false,
            last_seen_files: Vec::new(),
            pruned: false,
            notes: Vec::new(),
            last_note: None,
        }
    }

    /// The files of the store and the spool.
    pub fn location(&self) -> &StatsLocation {
        &self.location
    }

    /// Folds what was spooled since the last time; `now` is the time since the Unix epoch. Gives
    /// whether there was anything.
    pub fn refresh(&mut self, now: Duration) -> Result<bool, Error> {
        let files =
            spool_reader::files(&self.location.spool, now).map_err(Error::unreadable_records)?;
        let looks = |file: &SpoolFile| (file.key.clone(), file.length);
        let lengths: Vec<(String, u64)> = files.iter().map(looks).collect();
        if self.store.is_some() && lengths == self.last_seen_files && !self.is_behind {
            return Ok(false);
        }
        let changed = self.with_recovery(now, |this| this.fold(&files, now))?;
        self.last_seen_files = lengths;
        Ok(changed)
    }

    /// What was counted in a window, of the tools that `filter` names.
    pub fn summary(&mut self, filter: &CallFilter, now: Duration) -> Result<Summary, Error> {
        self.with_recovery(now, |this| this.sum(filter, now))
    }

    /// The series of a window in at most `most` slices, all tools of the query together. A window
    /// without a beginning begins with the first call.
    pub fn time_series(
        &mut self,
        filter: &CallFilter,
        now: Duration,
        most: usize,
    ) -> Result<Vec<TimeSlice>, Error> {
        self.with_recovery(now, |this| this.slices(filter, now, most))
    }

    /// The same for each tool of the query, or each server.
    pub fn time_series_by(
        &mut self,
        filter: &CallFilter,
        now: Duration,
        most: usize,
        by_server: bool,
    ) -> Result<TimeSeriesSet, Error> {
        self.with_recovery(now, |this| {
            let (series, range) = this.build_series(filter, now, most)?;
            let mut tally = TimeSeriesTally::new(series, by_server);
            this.add_up(filter, range, &mut tally)?;
            Ok(tally.finish())
        })
    }

    pub fn tools(&mut self, now: Duration) -> Result<Vec<ToolKey>, Error> {
        self.with_recovery(now, |this| {
            let mut tools = this.store.as_ref().map_or(Ok(Vec::new()), StatsStore::tools)?;
            tools.extend(this.unfolded.tools().map(|(tool, _)| tool.clone()));
            tools.sort_unstable();
            tools.dedup();
            Ok(tools)
        })
    }

    /// The size of the store in bytes; `None` without one.
    pub fn size(&self) -> Option<u64> {
        self.store.as_ref().and_then(|store| store.size().ok())
    }

    /// What had to be put right, and why something is not as it should be; each is handed out once.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Does something with the store; one that turns out to be damaged is moved away first.
    fn with_recovery<T>(
        &mut self,
        now: Duration,
        work: impl Fn(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, Error> {
        let status = store::inspect(&self.location.store, &mut self.notes);
        let status = status.map_err(|trouble| trouble.into_error(&self.location.store))?;
        match (work(self), status) {
            (Err(StoreError::Damaged(why)), StoreFileStatus::File(inode)) => {
                self.replace_damaged(inode, &why, now)?;
                // What the spool still holds is counted in the new one.
                let files = spool_reader::files(&self.location.spool, now)
                    .map_err(Error::unreadable_records)?;
                let again = self.fold(&files, now).and_then(|_| work(self));
                again.map_err(|trouble| trouble.into_error(&self.location.store))
            }
            (outcome, _) => outcome.map_err(|trouble| trouble.into_error(&self.location.store)),
        }
    }

    fn replace_damaged(&mut self, inode: u64, why: &str, now: Duration) -> Result<(), Error> {
        self.store = None;
        self.last_seen_files = Vec::new();
        self.unfolded = SpoolBatch::default();
        let path = self.location.store.path.display().to_string();
        match store::move_aside(&self.location.store, inode, now) {
            Ok(None) => {}
            Ok(Some(aside)) => self.notes.push(format!(
                "{path} was damaged ({why}); it was moved to {}, and a new one was started from \
                 what the spool still held",
                aside.display()
            )),
            Err(error) => {
                let trouble = StoreError::Damaged(format!("{why}; it cannot be moved: {error}"));
                return Err(trouble.into_error(&self.location.store));
            }
        }
        Ok(())
    }

    fn fold(&mut self, files: &[SpoolFile], now: Duration) -> Result<bool, StoreError> {
        self.is_behind = false;
        self.unfolded = SpoolBatch::default();
        let status = store::inspect(&self.location.store, &mut self.notes)?;
        let there = status != StoreFileStatus::Missing;
        if self.opened.is_some_and(|opened| status != StoreFileStatus::File(opened)) {
            // It was removed, or set aside as damaged.
            self.store = None;
        }
        if self.store.is_none() && (there || !files.is_empty()) {
            match store::open(&self.location.store, self.budget.lock_timeout, &mut self.notes) {
                Ok(store) => {
                    self.store = Some(store);
                    self.opened = match store::inspect(&self.location.store, &mut self.notes)? {
                        StoreFileStatus::File(inode) => Some(inode),
                        StoreFileStatus::Missing => None,
                    };
                }
                Err(StoreError::Failed(why)) if !there => {
                    self.note_once(&format!("cannot be created: {why}"));
                }
                Err(trouble) => return Err(trouble),
            }
        }
        let positions = match &self.store {
            Some(store) => store.positions()?,
            None => SpoolPositions::new(),
        };
        let Some(store) = self.store.as_ref().filter(|store| store.read_only.is_none()) else {
            if let Some(why) = self.store.as_ref().and_then(|store| store.read_only.clone()) {
                self.note_once(&why);
            }
            return self.read_unfolded(files, &positions);
        };
        let mut chunks = self.budget.max_chunks;
        match fold_files(store, files, &positions, &mut chunks) {
            Ok(changed) => {
                self.is_behind = chunks == 0 && has_unfolded(store, files)?;
                if !self.pruned {
                    // This does not wait for a lock: what cannot be removed now is removed another
                    // time.
                    store.set_lock_timeout(Duration::ZERO)?;
                    self.pruned = store.prune(now, self.retention).is_ok();
                    store.set_lock_timeout(self.budget.lock_timeout)?;
                    store::remove_stale_drafts(&self.location.store, now);
                }
                Ok(changed)
            }
            Err(StoreError::Busy | StoreError::Failed(_)) if self.budget.max_chunks == 1 => {
                // A moment was all there was.
                store.set_lock_timeout(Duration::ZERO)?;
                let positions = store.positions()?;
                self.read_unfolded(files, &positions)
            }
            Err(trouble @ (StoreError::Busy | StoreError::Failed(_))) => {
                // What was waited is enough.
                store.set_lock_timeout(Duration::ZERO)?;
                let positions = store.positions()?;
                self.note_once(&trouble.describe());
                self.read_unfolded(files, &positions)
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn read_unfolded(
        &mut self,
        files: &[SpoolFile],
        positions: &SpoolPositions,
    ) -> Result<bool, StoreError> {
        let mut chunks = self.budget.max_chunks;
        for file in files {
            let mut position = positions.get(&file.key).cloned().unwrap_or_default();
            while file.has_more(&position) {
                let chunk = file.read(&position).map_err(|error| {
                    StoreError::Failed(format!("{} cannot be read: {error}", file.path.display()))
                })?;
                if chunk.position.offset <= position.offset {
                    break;
                }
                if chunks == 0 {
                    self.is_behind = true;
                    return Ok(true);
                }
                chunks -= 1;
                position = chunk.position;
                self.unfolded.merge(chunk.batch);
            }
        }
        Ok(!self.unfolded.is_empty())
    }

    fn sum(&self, filter: &CallFilter, now: Duration) -> Result<Summary, StoreError> {
        let bounds = self.retention_bounds()?;
        let (ranges, from) = summary::window(filter, now, bounds);
        let mut tally = UsageTally::default();
        let mut summary = Summary {
            from,
            now,
            unfolded: self.unfolded.calls,
            is_behind: self.is_behind,
            damaged_lines: self.unfolded.damaged,
            ..Summary::default()
        };
        if let Some(store) = &self.store {
            summary.damaged_grains = store.read(&ranges, filter, &mut tally)?;
            summary.damaged_lines += store.damaged_lines()?;
        }
        summary::add_unfolded(&self.unfolded, &ranges, filter, &mut tally);
        summary.tools = tally.finish();
        Ok(summary)
    }

    fn slices(
        &self,
        filter: &CallFilter,
        now: Duration,
        most: usize,
    ) -> Result<Vec<TimeSlice>, StoreError> {
        let (mut series, range) = self.build_series(filter, now, most)?;
        self.add_up(filter, range, &mut series)?;
        Ok(series.finish())
    }

    fn retention_bounds(&self) -> Result<RetentionBounds, StoreError> {
        let store = self.store.as_ref();
        store.map_or(Ok(RetentionBounds::default()), StatsStore::retention_bounds)
    }

    /// The slices of a window, and the range they are made of.
    fn build_series(
        &self,
        filter: &CallFilter,
        now: Duration,
        most: usize,
    ) -> Result<(TimeSeries, GrainRange), StoreError> {
        let bounds = self.retention_bounds()?;
        let second = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let since = if let Some(since) = filter.since {
            second(since)
        } else {
            let all = self.sum(filter, now)?;
            let first = all.tools.iter().map(|usage| usage.period.first / 1_000).min();
            first.map_or(second(now), |first| i64::try_from(first).unwrap_or(i64::MAX))
        };
        let end = filter.until.unwrap_or(now);
        Ok(TimeSeries::new(since, second(end), bounds, most))
    }

    fn add_up(
        &self,
        filter: &CallFilter,
        range: GrainRange,
        sink: &mut impl GrainSink,
    ) -> Result<(), StoreError> {
        if let Some(store) = &self.store {
            store.read(&[range], filter, sink)?;
        }
        summary::add_unfolded(&self.unfolded, &[range], filter, sink);
        Ok(())
    }

    /// Reports once why the store is not written.
    fn note_once(&mut self, why: &str) {
        if self.last_note.as_deref() != Some(why) {
            let path = self.location.store.path.display();
            let calls = "calls missing from it are counted from the spool";
            self.notes.push(format!("{path} {why}; {calls}"));
            self.last_note = Some(why.to_owned());
        }
    }
}

fn fold_files(
    store: &StatsStore,
    files: &[SpoolFile],
    positions: &SpoolPositions,
    chunks: &mut usize,
) -> Result<bool, StoreError> {
    let mut changed = false;
    for file in files {
        let mut position = positions.get(&file.key).cloned().unwrap_or_default();
        while *chunks > 0 && file.has_more(&position) {
            match store.fold(file)? {
                Some((behind, _)) => position = behind,
                None => break,
            }
            changed = true;
            *chunks -= 1;
        }
        if file.is_finished && !file.has_more(&position) {
            // Another process may have removed it, and the next one tries again.
            let _gone = std::fs::remove_file(&file.path);
        }
    }
    Ok(changed)
}

fn has_unfolded(store: &StatsStore, files: &[SpoolFile]) -> Result<bool, StoreError> {
    let positions = store.positions()?;
    Ok(files.iter().any(|file| {
        let position = positions.get(&file.key).cloned().unwrap_or_default();
        file.has_more(&position)
    }))
}

#[cfg(test)]
mod tests;
