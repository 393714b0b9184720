//! Rotation of record files: set aside when large, removed when old.
//!
//! Owns: when a file is set aside (when it is large or old; renamed, so that no line is copied, lost
//! or torn), the names of the files set aside, which of them are removed, and reading all of them as
//! one. Never does: know what is in a line.
//!
//! `audit.jsonl` becomes `audit-20261122T013000Z.jsonl`. Any number of processes may append
//! meanwhile: one that still has the old file open writes its line there, and finds out before its
//! next one. A process that dies in between leaves either the old name or the new one.

mod follow;
mod reverse;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, RenameFlags};
use rustix::io::Errno;

pub use follow::LineFollower;
pub use reverse::{RecordLine, ReverseLines};

use super::append::{AppendError, AppendFile, FileIdentity, RecordLocation, failed};

/// How many names are tried for a file that is set aside.
const NAMES: i64 = 1_000;

/// How many files are removed at once: removing is part of a user's call.
const REMOVALS: usize = 16;

/// The part of its age after which a file is set aside, however short it is: so no line is kept much
/// longer than that age.
const AGE_PARTS: u32 = 8;

/// How far a clock may be ahead: of a line, for its file to be set aside, and of the file before it,
/// for others to be removed.
const DATED_AHEAD: Duration = Duration::from_hours(24);

/// When a log starts a new segment and which old ones are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "each is a maximum, of different things")]
pub struct SegmentRetention {
    /// The length in bytes at which a file is set aside.
    pub max_segment_bytes: u64,
    pub max_total_bytes: u64,
    /// How long a file is kept after its last line. One that is an eighth of this old is set aside by
    /// the next line, where the file system knows when it was made.
    pub max_age: Duration,
}

impl Default for SegmentRetention {
    /// 16 MiB a file, 1 GiB, 90 days.
    fn default() -> Self {
        Self {
            max_segment_bytes: 16 << 20,
            max_total_bytes: 1 << 30,
            max_age: Duration::from_hours(90 * 24),
        }
    }
}

impl SegmentRetention {
    pub fn for_age(age: Duration) -> Self {
        Self { max_age: age, ..Self::default() }
    }
}

/// A growing file and those that were set aside.
#[derive(Debug)]
pub struct SegmentedLog {
    file: AppendFile,
    retention: SegmentRetention,
    rotation_failed: AtomicBool,
    /// When the age of the file was looked at last, in hours since the Unix epoch; 0 before.
    age_checked: AtomicU32,
}

impl SegmentedLog {
    /// Names the file; nothing is opened yet. With `sync` each line is forced to the disk.
    pub fn new(location: RecordLocation, sync: bool, keep: SegmentRetention) -> Self {
        Self {
            file: AppendFile::new(location, sync),
            retention: keep,
            rotation_failed: AtomicBool::new(false),
            age_checked: AtomicU32::new(0),
        }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Opens the growing file without writing to it, to learn early whether that is possible.
    pub fn open(&self, now: Duration) -> Result<(), AppendError> {
        self.file.open(now)
    }

    /// Appends one line; `now` is the time since the Unix epoch.
    pub fn append(&self, now: Duration, json: &str) -> Result<(), AppendError> {
        let is_full = self.file.append(now, json)? >= self.retention.max_segment_bytes;
        if is_full || self.is_age_check_due(now) {
            self.file.with_open(|file, directory, identity, notes| {
                if !is_full && !self.is_old(file, now) {
                    return;
                }
                let outcome = self.rotate(file, directory, identity, now);
                if let Err(error) = outcome
                    && !self.rotation_failed.swap(true, Ordering::Relaxed)
                {
                    let path = self.path().display();
                    notes.push(format!("{path} keeps growing: it cannot be rotated: {error}"));
                }
            });
        }
        Ok(())
    }

    /// Whether the age was not looked at in this hour yet; it is now.
    fn is_age_check_due(&self, now: Duration) -> bool {
        let hour = u32::try_from(now.as_secs() / 3600).unwrap_or(u32::MAX);
        self.age_checked.swap(hour, Ordering::Relaxed) != hour
    }

    /// Whether the file was made long before the line that was just written to it.
    fn is_old(&self, file: &File, now: Duration) -> bool {
        let since_epoch = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
        let Ok(metadata) = file.metadata() else { return false };
        let created = metadata.created().ok().and_then(since_epoch);
        let written = metadata.modified().ok().and_then(since_epoch).unwrap_or_default();
        // A line that is dated ahead of its writing says nothing about the age of the others.
        let is_dated_ahead = now > written + DATED_AHEAD;
        let is_old = |at| now.saturating_sub(at) >= self.retention.max_age / AGE_PARTS;
        !is_dated_ahead && created.is_some_and(is_old)
    }

    /// Repairs and failures other than those of lines; each note is returned once.
    pub fn take_notes(&self) -> Vec<String> {
        self.file.take_notes()
    }

    fn rotate(
        &self,
        file: &File,
        directory: impl AsFd,
        identity: FileIdentity,
        now: Duration,
    ) -> Result<(), Errno> {
        let directory = directory.as_fd();
        let Some(name) = self.path().file_name() else { return Ok(()) };
        // The lock belongs to the file, not to its name, and ends with its holder. A process that
        // does not get it need not wait: another one is setting the same file aside.
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(()),
            other => other?,
        }
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let outcome = match stat {
            Ok(stat) if FileIdentity::of(&stat) == identity => {
                self.rename(directory, name, now).map(|()| self.prune(directory, now))
            }
            // It was set aside between our line and the lock.
            _ => Ok(()),
        };
        // The lock is released when the file is closed.
        let _ends_anyway = rustix::fs::flock(file, FlockOperation::Unlock);
        outcome
    }

    fn rename(&self, directory: impl AsFd, name: &OsStr, now: Duration) -> Result<(), Errno> {
        let directory = directory.as_fd();
        let names = SegmentNames::of(self.path());
        // Names sort as the files were set aside, even if the clock was set back in between.
        let newest = names.list(directory)?.pop().and_then(|newest| names.second(&newest));
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let first = newest.map_or(now, |newest| now.max(newest.saturating_add(1)));
        for second in first..first.saturating_add(NAMES) {
            let target = names.at(second);
            let renamed = match rustix::fs::renameat_with(
                directory,
                name,
                directory,
                &target,
                RenameFlags::NOREPLACE,
            ) {
                // Some file systems cannot promise it; the lock keeps us apart there.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    match rustix::fs::statat(directory, &target, AtFlags::SYMLINK_NOFOLLOW) {
                        Err(Errno::NOENT) => {
                            rustix::fs::renameat(directory, name, directory, &target)
                        }
                        Ok(_) => Err(Errno::EXIST),
                        Err(errno) => Err(errno),
                    }
                }
                other => other,
            };
            match renamed {
                Err(Errno::EXIST) => {}
                other => return other,
            }
        }
        Err(Errno::EXIST)
    }

    /// Removes what is too old or too much. What cannot be removed stays for the next time.
    ///
    /// A clock that is wrong must not cost what was kept: of the time since the file before this one
    /// was set aside, only as much is believed as a file grows, and a day. After months without a call
    /// the second file takes the old ones along instead of the first.
    fn prune(&self, directory: impl AsFd, now: Duration) {
        let directory = directory.as_fd();
        let Ok(segments) = SegmentNames::of(self.path()).list(directory) else { return };
        let stat = |name: &OsString| {
            let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            regular.then(|| {
                let changed = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
                (u64::try_from(stat.st_size).unwrap_or(0), changed)
            })
        };
        let sizes: Vec<_> = segments.iter().filter_map(|name| Some((name, stat(name)?))).collect();
        let before = sizes.iter().rev().nth(1).map_or(now, |(_, (_, changed))| *changed);
        let now = now.min(before + self.retention.max_age / AGE_PARTS + DATED_AHEAD);
        let mut total: u64 = sizes.iter().map(|(_, (size, _))| size).sum();
        let mut removed = 0;
        for (name, (size, changed)) in sizes {
            let old = now.saturating_sub(changed) > self.retention.max_age;
            if !(old || total > self.retention.max_total_bytes) || removed == REMOVALS {
                return;
            }
            if rustix::fs::unlinkat(directory, name, AtFlags::empty()).is_ok() {
                removed += 1;
            }
            total = total.saturating_sub(size);
        }
    }
}

/// All files of these records, the oldest first, the growing one last, whether they exist or not.
pub fn files(location: &RecordLocation) -> Result<Vec<RecordLocation>, AppendError> {
    let directory = match File::open(location.parent()) {
        Ok(directory) => directory,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(location.parent(), "cannot be read", &error)),
    };
    let set_aside = SegmentNames::of(&location.path)
        .list(directory.as_fd())
        .map_err(|errno| failed(location.parent(), "cannot be read", &errno.into()))?;
    let at = |name: OsString| RecordLocation {
        path: location.parent().join(name),
        directory_owner: location.directory_owner,
    };
    Ok(set_aside.into_iter().map(at).chain([location.clone()]).collect())
}

/// The names of files that were set aside: `{stem}-{time}.{extension}`.
struct SegmentNames {
    prefix: String,
    suffix: String,
}

const STAMP: &str = "%Y%m%dT%H%M%SZ";

impl SegmentNames {
    fn of(path: &Path) -> Self {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let suffix = match path.extension() {
            Some(extension) => format!(".{}", text(Some(extension))),
            None => String::new(),
        };
        Self { prefix: format!("{}-", text(path.file_stem())), suffix }
    }

    fn at(&self, second: i64) -> String {
        let stamp = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX);
        format!("{}{}{}", self.prefix, stamp.strftime(STAMP), self.suffix)
    }

    /// When a file was set aside, by its name; `None` for other files.
    fn second(&self, name: &OsStr) -> Option<i64> {
        let stamp = name.to_str()?.strip_prefix(&self.prefix)?.strip_suffix(&self.suffix)?;
        let time = jiff::civil::DateTime::strptime(STAMP, stamp).ok()?;
        let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
        // Only what we write ourselves: strptime is more generous.
        (self.at(time) == name.to_str()?).then_some(time)
    }

    fn list(&self, directory: impl AsFd) -> Result<Vec<OsString>, Errno> {
        use std::os::unix::ffi::OsStringExt as _;
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if self.second(&name).is_some() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

#[cfg(test)]
mod tests;
