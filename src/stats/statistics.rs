//! The statistics of this user: folds what was spooled, answers questions, forgets on request.
//!
//! Owns: what happens when the store cannot be used. A damaged one is moved away and begun anew;
//! of one that is locked, full, read-only or newer what is there is read, and what was not folded
//! is shown from the spool. Never does: wait longer than it was told, lose a line of the spool.

use std::time::Duration;

use super::count::{Batch, Tool};
use super::level::Stretch;
use super::place::Place;
use super::store::{self, Found, Sink, Store, Trouble};
use super::summary::{self, Course, CourseTally, Courses, Query, Slice, Summary, Tally};
use super::unread::{self, Positions, SpoolFile};
use crate::model::Fault;
use crate::util::append::AppendError;

/// How much somebody who reads statistics is willing to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For the locks of other processes, all in all.
    pub locks: Duration,
    /// How many parts of the spool are folded, of [`unread::CHUNK`] bytes each.
    pub chunks: usize,
}

impl Patience {
    /// Five seconds, and everything is folded: for whoever asks for statistics.
    pub const ALL: Self = Self { locks: Duration::from_secs(5), chunks: usize::MAX };

    /// A moment, and one part: for whoever asks for something else.
    pub const LITTLE: Self = Self { locks: Duration::from_millis(200), chunks: 1 };
}

/// The statistics at a place.
#[derive(Debug)]
pub struct Statistics {
    place: Place,
    retention: Duration,
    patience: Patience,
    store: Option<Store>,
    /// Which file the store is.
    opened: Option<u64>,
    /// What was read of the spool and could not be folded.
    unfolded: Batch,
    /// The spool holds more than was read.
    behind: bool,
    /// What each file of the spool looked like when it was read last.
    seen: Vec<(String, u64)>,
    pruned: bool,
    notes: Vec<String>,
    told: Option<String>,
}

impl Statistics {
    /// Names the place; nothing is opened yet. What is older than `retention` is let go.
    pub fn new(place: Place, retention: Duration, patience: Patience) -> Self {
        Self {
            place,
            retention,
            patience,
            store: None,
            opened: None,
            unfolded: Batch::default(),
            behind: false,
            seen: Vec::new(),
            pruned: false,
            notes: Vec::new(),
            told: None,
        }
    }

    /// Where they are kept.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Folds what was spooled since the last time; `now` is the time since the Unix epoch. Gives
    /// whether there was anything.
    ///
    /// # Errors
    /// When the spool or the store is not what it must be, or cannot be read at all. That it cannot
    /// be written is a note.
    pub fn refresh(&mut self, now: Duration) -> Result<bool, Fault> {
        let files = unread::files(&self.place.spool, now).map_err(unreadable)?;
        let looks = |file: &SpoolFile| (file.key.clone(), file.length);
        let seen: Vec<(String, u64)> = files.iter().map(looks).collect();
        if self.store.is_some() && seen == self.seen && !self.behind {
            return Ok(false);
        }
        let changed = self.mended(now, |this| this.fold(&files, now))?;
        self.seen = seen;
        Ok(changed)
    }

    /// What was counted in a window.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn summary(&mut self, query: &Query, now: Duration) -> Result<Summary, Fault> {
        self.mended(now, |this| this.sum(query, now))
    }

    /// The course of a window in at most `most` slices, all tools of the query together. A window
    /// without a beginning begins with the first call.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn course(
        &mut self,
        query: &Query,
        now: Duration,
        most: usize,
    ) -> Result<Vec<Slice>, Fault> {
        self.mended(now, |this| this.slices(query, now, most))
    }

    /// The same for each tool of the query, or each server.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn courses(
        &mut self,
        query: &Query,
        now: Duration,
        most: usize,
        by_server: bool,
    ) -> Result<Courses, Fault> {
        self.mended(now, |this| {
            let (course, stretch) = this.course_of(query, now, most)?;
            let mut tally = CourseTally::new(course, by_server);
            this.add_up(query, stretch, &mut tally)?;
            Ok(tally.finish())
        })
    }

    /// The tools that were ever called, as far as they are kept.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn tools(&mut self, now: Duration) -> Result<Vec<Tool>, Fault> {
        self.mended(now, |this| {
            let mut tools = this.store.as_ref().map_or(Ok(Vec::new()), Store::tools)?;
            tools.extend(this.unfolded.tools().map(|(tool, _)| tool.clone()));
            tools.sort_unstable();
            tools.dedup();
            Ok(tools)
        })
    }

    /// Forgets what was counted so far, of tools with these full names or of all; gives the number
    /// of calls.
    ///
    /// # Errors
    /// When not everything could be folded before, or the store cannot be written: then nothing is
    /// forgotten.
    pub fn reset(&mut self, tools: Option<&[String]>, now: Duration) -> Result<u64, Fault> {
        self.refresh(now)?;
        let written = match &self.store {
            // There never was a call.
            None if self.unfolded.is_empty() => return Ok(0),
            Some(Store { read_only: None, .. }) if self.unfolded.is_empty() && !self.behind => None,
            _ => Some(self.told.clone().unwrap_or_else(|| "it cannot be written".to_owned())),
        };
        if let Some(why) = written {
            return Err(Fault::unreachable(format!("nothing was forgotten: {why}")));
        }
        self.mended(now, |this| this.store.as_ref().map_or(Ok(0), |store| store.reset(tools)))
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
    fn mended<T>(
        &mut self,
        now: Duration,
        work: impl Fn(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, Fault> {
        let found = store::look(&self.place.store, &mut self.notes);
        let found = found.map_err(|trouble| trouble.fault(&self.place.store))?;
        match (work(self), found) {
            (Err(Trouble::Damaged(why)), Found::File(inode)) => {
                self.begin_anew(inode, &why, now)?;
                // What the spool still holds is counted in the new one.
                let files = unread::files(&self.place.spool, now).map_err(unreadable)?;
                let again = self.fold(&files, now).and_then(|_| work(self));
                again.map_err(|trouble| trouble.fault(&self.place.store))
            }
            (done, _) => done.map_err(|trouble| trouble.fault(&self.place.store)),
        }
    }

    fn begin_anew(&mut self, inode: u64, why: &str, now: Duration) -> Result<(), Fault> {
        self.store = None;
        self.seen = Vec::new();
        self.unfolded = Batch::default();
        let path = self.place.store.path.display().to_string();
        match store::move_aside(&self.place.store, inode, now) {
            Ok(None) => {}
            Ok(Some(aside)) => self.notes.push(format!(
                "{path} was damaged ({why}); it is {} now, and a new one was begun with what the \
                 spool still held",
                aside.display()
            )),
            Err(error) => {
                let trouble = Trouble::Damaged(format!("{why}; it cannot be moved away: {error}"));
                return Err(trouble.fault(&self.place.store));
            }
        }
        Ok(())
    }

    /// Folds what there is, or reads it when it cannot be folded.
    fn fold(&mut self, files: &[SpoolFile], now: Duration) -> Result<bool, Trouble> {
        self.behind = false;
        self.unfolded = Batch::default();
        let found = store::look(&self.place.store, &mut self.notes)?;
        let there = found != Found::Nothing;
        if self.opened.is_some_and(|opened| found != Found::File(opened)) {
            // It was removed, or somebody found it damaged.
            self.store = None;
        }
        if self.store.is_none() && (there || !files.is_empty()) {
            match store::open(&self.place.store, self.patience.locks, &mut self.notes) {
                Ok(store) => {
                    self.store = Some(store);
                    self.opened = match store::look(&self.place.store, &mut self.notes)? {
                        Found::File(inode) => Some(inode),
                        Found::Nothing => None,
                    };
                }
                Err(Trouble::Failed(why)) if !there => self.tell(&format!("cannot be made: {why}")),
                Err(trouble) => return Err(trouble),
            }
        }
        let positions = match &self.store {
            Some(store) => store.positions()?,
            None => Positions::new(),
        };
        let Some(store) = self.store.as_ref().filter(|store| store.read_only.is_none()) else {
            if let Some(why) = self.store.as_ref().and_then(|store| store.read_only.clone()) {
                self.tell(&why);
            }
            return self.read(files, &positions);
        };
        let mut chunks = self.patience.chunks;
        match write(store, files, &positions, &mut chunks) {
            Ok(changed) => {
                self.behind = chunks == 0 && lacks(store, files)?;
                if !self.pruned {
                    // Nobody waits for that: what cannot be let go today is let go another time.
                    store.set_patience(Duration::ZERO)?;
                    self.pruned = store.prune(now, self.retention).is_ok();
                    store.set_patience(self.patience.locks)?;
                    store::sweep(&self.place.store, now);
                }
                Ok(changed)
            }
            Err(Trouble::Busy | Trouble::Failed(_)) if self.patience.chunks == 1 => {
                // A moment was all there was.
                store.set_patience(Duration::ZERO)?;
                let positions = store.positions()?;
                self.read(files, &positions)
            }
            Err(trouble @ (Trouble::Busy | Trouble::Failed(_))) => {
                // What was waited is enough.
                store.set_patience(Duration::ZERO)?;
                let positions = store.positions()?;
                self.tell(&trouble.words());
                self.read(files, &positions)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Reads what cannot be folded.
    fn read(&mut self, files: &[SpoolFile], positions: &Positions) -> Result<bool, Trouble> {
        let mut chunks = self.patience.chunks;
        for file in files {
            let mut position = positions.get(&file.key).cloned().unwrap_or_default();
            while file.has_more(&position) {
                let chunk = file.read(&position).map_err(|error| {
                    Trouble::Failed(format!("{} cannot be read: {error}", file.path.display()))
                })?;
                if chunk.position.offset <= position.offset {
                    break;
                }
                if chunks == 0 {
                    self.behind = true;
                    return Ok(true);
                }
                chunks -= 1;
                position = chunk.position;
                self.unfolded.merge(chunk.batch);
            }
        }
        Ok(!self.unfolded.is_empty())
    }

    fn sum(&self, query: &Query, now: Duration) -> Result<Summary, Trouble> {
        let kept = self.store.as_ref().map_or(Ok(super::level::Kept::default()), Store::kept)?;
        let (stretches, from) = summary::window(query.since, now, kept);
        let (mut tally, only) = (Tally::default(), query.tools.as_deref());
        let mut summary = Summary {
            from,
            now,
            unfolded: self.unfolded.calls,
            behind: self.behind,
            damaged_lines: self.unfolded.damaged,
            ..Summary::default()
        };
        if let Some(store) = &self.store {
            summary.damaged_grains = store.read(&stretches, only, &mut tally)?;
            summary.damaged_lines += store.damaged_lines()?;
        }
        summary::add_unfolded(&self.unfolded, &stretches, only, &mut tally);
        summary.tools = tally.finish();
        Ok(summary)
    }

    fn slices(&self, query: &Query, now: Duration, most: usize) -> Result<Vec<Slice>, Trouble> {
        let (mut course, stretch) = self.course_of(query, now, most)?;
        self.add_up(query, stretch, &mut course)?;
        Ok(course.finish())
    }

    /// The slices of a window, and the stretch they are made of.
    fn course_of(
        &self,
        query: &Query,
        now: Duration,
        most: usize,
    ) -> Result<(Course, Stretch), Trouble> {
        let kept = self.store.as_ref().map_or(Ok(super::level::Kept::default()), Store::kept)?;
        let second = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let since = if let Some(since) = query.since {
            second(since)
        } else {
            let all = self.sum(query, now)?;
            let first = all.tools.iter().map(|usage| usage.used.first / 1_000).min();
            first.map_or(second(now), |first| i64::try_from(first).unwrap_or(i64::MAX))
        };
        Ok(Course::new(since, second(now), kept, most))
    }

    fn add_up(&self, query: &Query, stretch: Stretch, sink: &mut impl Sink) -> Result<(), Trouble> {
        let only = query.tools.as_deref();
        if let Some(store) = &self.store {
            store.read(&[stretch], only, sink)?;
        }
        summary::add_unfolded(&self.unfolded, &[stretch], only, sink);
        Ok(())
    }

    /// Says once why the store is not written.
    fn tell(&mut self, why: &str) {
        if self.told.as_deref() != Some(why) {
            let path = self.place.store.path.display();
            let calls = "calls that are not in it are counted from the spool";
            self.notes.push(format!("{path} {why}; {calls}"));
            self.told = Some(why.to_owned());
        }
    }
}

/// Folds what every file has more than was folded, and removes files that will get no more.
fn write(
    store: &Store,
    files: &[SpoolFile],
    positions: &Positions,
    chunks: &mut usize,
) -> Result<bool, Trouble> {
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
        if file.finished && !file.has_more(&position) {
            // Another process may have removed it, and the next one tries again.
            let _gone = std::fs::remove_file(&file.path);
        }
    }
    Ok(changed)
}

/// Whether any file has more than was folded.
fn lacks(store: &Store, files: &[SpoolFile]) -> Result<bool, Trouble> {
    let positions = store.positions()?;
    Ok(files.iter().any(|file| {
        let position = positions.get(&file.key).cloned().unwrap_or_default();
        file.has_more(&position)
    }))
}

fn unreadable(error: AppendError) -> Fault {
    match error {
        AppendError::Unsafe(why) => {
            Fault::denied(format!("not read: {why}")).hint("look who made it, and remove it")
        }
        AppendError::Failed(why) => Fault::internal(why),
    }
}

#[cfg(test)]
mod tests;
