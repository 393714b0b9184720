//! The directory of an entry, opened once and kept open; validated relative paths in it; opening what is
//! there, regular files only, never pipes or devices; and reading about it without opening.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use cap_std::fs::{
    Dir, File, FileType, FileTypeExt as _, Metadata, MetadataExt as _, OpenOptions,
    OpenOptionsExt as _,
};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::entry;
use super::job::{self, FileJob};
use crate::model::{Error, ErrorPhase, ToolResult};
use crate::providers::arguments::Arguments;
use crate::util::private_file;

/// A directory that is only passed through or held needs no right to be read.
#[cfg(target_os = "linux")]
const HOLD: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HOLD: OFlags = OFlags::empty();

#[derive(Debug)]
pub(super) struct RootDirectory {
    configured_path: PathBuf,
    real: PathBuf,
    create: bool,
    /// Where its content is until it is first used, if an earlier version kept it elsewhere.
    former: Option<PathBuf>,
    opened: OnceLock<Dir>,
}

impl RootDirectory {
    /// The directory at `written`, an absolute path. With `create` it is made when it is first
    /// used, readable only by its owner.
    pub(super) fn new(written: PathBuf, create: bool) -> Self {
        let real = real(&written);
        Self { configured_path: written, real, create, former: None, opened: OnceLock::new() }
    }

    /// The same for one whose content is at `former` until it is first used.
    pub(super) fn moved_from(former: PathBuf, written: PathBuf, create: bool) -> Self {
        Self { former: Some(former), ..Self::new(written, create) }
    }

    pub(super) fn of_user(&self, user: &str) -> Self {
        Self::new(entry::of_user(&self.configured_path, user), self.create)
    }

    /// Its path without links, for people.
    pub(super) fn shown(&self) -> String {
        self.real.display().to_string()
    }

    pub(super) fn spellings(&self) -> [&Path; 2] {
        [&self.real, &self.configured_path]
    }

    pub(super) fn will_be_created(&self) -> bool {
        self.create && !self.real.exists()
    }

    /// Why it cannot be used, as far as that can be seen without opening it.
    pub(super) fn obstacle(&self) -> Option<Error> {
        if self.opened.get().is_some() {
            return None;
        }
        match std::fs::symlink_metadata(&self.real) {
            Ok(metadata) if metadata.is_dir() => None,
            Ok(_) => Some(self.unusable(&Errno::NOTDIR.into())),
            Err(error)
                if (self.create || self.former.as_ref().is_some_and(|path| path.exists()))
                    && error.kind() == io::ErrorKind::NotFound =>
            {
                None
            }
            Err(error) => Some(self.unusable(&error)),
        }
    }

    pub(super) fn open(&self) -> Result<&Dir, Error> {
        if let Some(dir) = self.opened.get() {
            return Ok(dir);
        }
        self.take_former().map_err(|error| self.unusable(&error))?;
        let dir = descend(&self.real, self.create).map_err(|error| self.unusable(&error))?;
        Ok(self.opened.get_or_init(|| dir))
    }

    /// Moves what an earlier version kept elsewhere here, once.
    fn take_former(&self) -> io::Result<()> {
        let Some(former) = self.former.as_ref().filter(|path| path.is_dir()) else {
            return Ok(());
        };
        let Some(parent) = self.real.parent().filter(|_| !self.real.exists()) else {
            return Ok(());
        };
        private_file::make_directory(parent)?;
        match std::fs::rename(former, &self.real) {
            // Another process was first.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved,
        }
    }

    fn unusable(&self, cause: &io::Error) -> Error {
        let path = self.real.display();
        let error = match cause.kind() {
            io::ErrorKind::NotFound => {
                Error::unreachable(format!("the directory {path} does not exist"))
                    .with_hint("create it, or set 'create: true' in the entry")
            }
            io::ErrorKind::NotADirectory => {
                Error::unreachable(format!("{path} is not a directory"))
                    .with_hint("'root_dir' in the entry is relative to its file")
            }
            _ => Error::unreachable(format!(
                "the directory {path} cannot be used: {}",
                job::io_error_text(cause)
            )),
        };
        error.with_phase(ErrorPhase::Start)
    }
}

/// The path without links, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => real(parent).join(name),
        (Some(parent), Some(Component::ParentDir)) => {
            let parent = real(parent);
            parent.parent().map_or(parent.clone(), Path::to_path_buf)
        }
        (Some(parent), Some(_)) => real(parent),
        _ => path.to_path_buf(),
    }
}

fn descend(path: &Path, create: bool) -> io::Result<Dir> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | HOLD;
    let mut at = openat(CWD, "/", flags, Mode::empty())?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        at = match openat(&at, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if create => {
                match mkdirat(&at, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&at, name, flags, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(Dir::from_std_file(std::fs::File::from(at)))
}

/// A path relative to the directory, without a way out as far as the text can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RelativePath {
    path: PathBuf,
    /// Whether the text can only mean a directory.
    directory: bool,
}

impl RelativePath {
    /// Reads the path of a call. An absolute one must start with one of `roots`, which are the
    /// spellings of the directory.
    pub(super) fn read(text: &str, roots: [&Path; 2]) -> Result<Self, Error> {
        if text.contains('\0') {
            return Err(Error::usage("a path cannot contain a NUL byte"));
        }
        let whole = Path::new(text);
        let out = || job::outside(text, &roots[0].display().to_string());
        let below = if whole.is_absolute() {
            roots.iter().find_map(|root| whole.strip_prefix(root).ok()).ok_or_else(out)?
        } else {
            whole
        };
        let mut path = PathBuf::new();
        let mut depth = 0_usize;
        for component in below.components() {
            match component {
                Component::Normal(name) => {
                    depth += 1;
                    path.push(name);
                }
                Component::ParentDir => {
                    depth = depth.checked_sub(1).ok_or_else(out)?;
                    path.push("..");
                }
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return Err(out()),
            }
        }
        let last = text.rsplit('/').next().unwrap_or_default();
        Ok(Self { path, directory: matches!(last, "" | "." | "..") })
    }

    pub(super) fn path(&self) -> &Path {
        if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path }
    }

    pub(super) fn shown(&self) -> String {
        self.path().display().to_string()
    }

    /// Its parent directory, and its name there; `None` if it can only be a directory.
    pub(super) fn file_parts(&self) -> Option<(&Path, &OsStr)> {
        if self.directory { None } else { self.entry_parts() }
    }

    /// The same if it may also be a directory; `None` for the topmost one and for `..`.
    pub(super) fn entry_parts(&self) -> Option<(&Path, &OsStr)> {
        let name = self.path.file_name()?;
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Some((parent.unwrap_or(Path::new(".")), name))
    }

    pub(super) fn join(&self, name: &OsStr) -> Self {
        Self { path: self.path.join(name), directory: false }
    }
}

pub(super) fn kind_phrase(kind: FileType) -> &'static str {
    if kind.is_file() {
        "a file"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "neither a file nor a directory"
    }
}

pub(super) fn type_name(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_file() => "file",
        kind if kind.is_dir() => "directory",
        kind if kind.is_symlink() => "link",
        _ => "other",
    }
}

pub(super) fn no_file(path: &Path, file_type: FileType) -> Error {
    let message = format!("'{}' is {}, not a file", path.display(), kind_phrase(file_type));
    if file_type.is_dir() { Error::tool(message) } else { Error::denied(message) }
}

/// Opening must neither wait for the other end of a pipe nor take over a terminal.
fn options(more: OFlags) -> OpenOptions {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    options
}

/// Opens a regular file for reading. Links are followed as long as they stay in the directory.
pub(super) fn file(job: &FileJob, path: &RelativePath) -> Result<(File, Metadata), Error> {
    let dir = job.dir()?;
    let path = path.path();
    let error = |cause| job.io_error("read", path, &cause);
    // Checked first, because merely opening some devices makes them act; checked again when open,
    // because it may have changed in between.
    let file_type = dir.metadata(path).map_err(error)?.file_type();
    if !file_type.is_file() {
        return Err(no_file(path, file_type));
    }
    let file = dir.open_with(path, &options(OFlags::empty())).map_err(error)?;
    let metadata = file.metadata().map_err(error)?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(no_file(path, metadata.file_type())) }
}

/// Opens the regular file `name` of `dir` for reading; no link is followed.
pub(super) fn open_no_follow(dir: &Dir, name: &OsStr) -> std::io::Result<Option<(File, Metadata)>> {
    if !dir.symlink_metadata(name)?.is_file() {
        return Ok(None);
    }
    let file = dir.open_with(name, &options(OFlags::NOFOLLOW))?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata)))
}

/// Answers a call of `info`: what kind of file it is, its size and times.
pub(super) fn run(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let path = job.path(arguments, "path")?;
    let dir = job.dir()?;
    let error = |cause| job.io_error("look at", path.path(), &cause);
    let metadata = dir.symlink_metadata(path.path()).map_err(error)?;
    let mut value = entry(&path.shown(), &metadata);
    value["mode"] = json!(format!("{:04o}", metadata.mode() & 0o7777));
    value["links"] = json!(metadata.nlink());
    if metadata.is_symlink() {
        let target = target(dir, path.path()).map_err(error)?;
        value["target"] = json!(target);
    }
    Ok(ToolResult::json(value))
}

/// Where a link points, as written in the link.
fn target(dir: &Dir, path: &std::path::Path) -> std::io::Result<String> {
    Ok(dir.read_link_contents(path)?.display().to_string())
}

pub(super) fn entry(path: &str, metadata: &Metadata) -> Value {
    json!({
        "path": path,
        "type": type_name(metadata.file_type()),
        "size": metadata.len(),
        "modified": modified(metadata),
    })
}

/// The date of the last change, to the second, in UTC.
pub(super) fn modified(metadata: &Metadata) -> Option<String> {
    jiff::Timestamp::from_second(metadata.mtime()).ok().map(|at| at.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOTS: [&str; 2] = ["/srv/data", "/link"];

    fn read(text: &str) -> Result<String, String> {
        RelativePath::read(text, ROOTS.map(Path::new))
            .map(|inside| inside.shown())
            .map_err(|error| format!("{} {error}", error.kind().exit_code()))
    }

    #[test]
    fn a_path_is_relative_or_begins_with_the_directory() {
        for (text, path) in [
            ("a", "a"),
            ("./a//b/.", "a/b"),
            ("", "."),
            (".", "."),
            ("a/../b", "a/../b"),
            ("/srv/data", "."),
            ("/srv/data/a/b", "a/b"),
            ("/link/a", "a"),
            ("...", "..."),
        ] {
            assert_eq!(read(text).as_deref(), Ok(path), "{text}");
        }
    }

    #[test]
    fn a_path_that_leads_out_is_denied() {
        for text in [
            "..",
            "../x",
            "a/../../b",
            "a/../../data/b",
            "/etc/passwd",
            "/srv/database",
            "/srv/data/../x",
            "//etc",
            "/proc/self/cwd",
            "/other/../srv/data/x",
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.starts_with("6 ") && refused.contains(text), "{text}: {refused}");
        }
        assert!(read("a\0b").unwrap_err().starts_with("2 "));
    }

    #[test]
    fn a_file_has_a_name_and_a_directory() {
        let split = |text: &str| {
            let inside = RelativePath::read(text, ROOTS.map(Path::new)).unwrap();
            inside.file_parts().map(|(parent, name)| {
                (parent.display().to_string(), name.to_string_lossy().into_owned())
            })
        };
        assert_eq!(split("a/b"), Some(("a".into(), "b".into())));
        assert_eq!(split("b"), Some((".".into(), "b".into())));
        for text in ["", ".", "a/", "a/.", "a/.."] {
            assert_eq!(split(text), None, "{text}");
        }
    }

    proptest! {
        /// O03: whatever the text, following it step by step never passes the directory.
        #[test]
        fn no_text_leads_out(text in prop_oneof![
            any::<String>(),
            "(\\.\\.?/|/|a/|b\\x00?|srv/data/|\\.){0,8}",
            "/srv/data/(\\.\\./|a/|\\./|/){0,6}[a-c.]{0,3}",
        ]) {
            if let Ok(inside) = RelativePath::read(&text, ROOTS.map(Path::new)) {
                let mut depth = 0_i32;
                for component in inside.path().components() {
                    match component {
                        Component::Normal(_) => depth += 1,
                        Component::ParentDir => depth -= 1,
                        Component::CurDir => {}
                        other => prop_assert!(false, "{other:?} in {text:?}"),
                    }
                    prop_assert!(depth >= 0, "{text:?}");
                }
            }
        }
    }
}
