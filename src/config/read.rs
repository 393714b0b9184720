//! Reading a configuration file, with checks of its type, owner and size.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

use super::node::SourceText;
use crate::model::{Diagnostic, SourceLocation};
use crate::util::regular_file::{self, UnreadableFile};

pub(super) use crate::util::regular_file::reason;

/// Maximum size of a file: enough for some 25,000 tools.
pub const MAX_BYTES: u64 = 8 << 20;

/// Reads a configuration file of at most [`MAX_BYTES`]. `named` says that the user named it, which
/// allows a pipe; anything else but a regular file is refused without waiting for it.
pub fn read(path: &Path, named: bool) -> Result<(Arc<SourceText>, String), Diagnostic> {
    let text = text(path, named, MAX_BYTES)?;
    Ok((SourceText::new(path, &text), text))
}

/// The text of a file of at most so many bytes, like [`read`].
pub fn text(path: &Path, named: bool, limit: u64) -> Result<String, Diagnostic> {
    let shown = path.display();
    let failed =
        |why: std::io::Error| about(path, format!("cannot read {shown}: {}", reason(&why)));
    let mut bytes = Vec::new();
    let is_pipe = || std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
    if named && is_pipe() {
        read_pipe(path, &mut bytes, limit).map_err(failed)?;
        if bytes.is_empty() {
            return Err(about(path, format!("{shown} is a pipe without a writer")));
        }
    } else {
        let (file, meta) = regular_file::open(path).map_err(|why| match why {
            UnreadableFile::System(why) => failed(why),
            UnreadableFile::Special(what) => {
                about(path, format!("{shown} is {what}, not a regular file"))
            }
            other => about(path, format!("{shown}: {other}")),
        })?;
        check(path, &meta, limit)?;
        file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > limit {
        return Err(too_large(path, limit));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(path, &error))
}

/// Reads a pipe, such as `<(generate)` in a shell, as long as another process has its other end
/// open. A pipe without a writer returns nothing, without waiting.
fn read_pipe(path: &Path, bytes: &mut Vec<u8>, limit: u64) -> std::io::Result<()> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut pipe = File::options().read(true).custom_flags(flags).open(path)?;
    if !pipe.metadata()?.file_type().is_fifo() {
        return Err(std::io::Error::other("it is no longer a pipe"));
    }
    let mut first = [0; 4096];
    match pipe.read(&mut first) {
        Ok(0) => return Ok(()),
        Ok(count) => bytes.extend(first.iter().take(count)),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    rustix::fs::fcntl_setfl(&pipe, OFlags::empty())?;
    pipe.take(limit + 1).read_to_end(bytes).map(drop)
}

fn check(path: &Path, meta: &Metadata, limit: u64) -> Result<(), Diagnostic> {
    let shown = path.display();
    if meta.len() > limit {
        return Err(too_large(path, limit));
    }
    if meta.permissions().mode() & 0o002 != 0 {
        return Err(about(path, format!("{shown} is refused: anyone can write to it"))
            .with_hint(format!("chmod o-w {shown}")));
    }
    let owner = meta.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        let message = format!("{shown} is refused: it belongs to another user (uid {owner})");
        return Err(about(path, message).with_hint("change its owner with chown, or copy it"));
    }
    Ok(())
}

fn too_large(path: &Path, limit: u64) -> Diagnostic {
    let limit = crate::util::units::show_size(limit);
    about(path, format!("{} is larger than {limit}", path.display()))
}

/// An error about a file as a whole.
fn about(path: &Path, message: String) -> Diagnostic {
    Diagnostic::error(message).with_location(file_location(path))
}

fn not_utf8(path: &Path, error: &std::string::FromUtf8Error) -> Diagnostic {
    let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
    let valid = String::from_utf8_lossy(valid);
    let line = valid.rsplit('\n').next().unwrap_or_default();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let location = SourceLocation {
        file: Arc::new(path.to_path_buf()),
        line: count(valid.matches('\n').count() + 1),
        column: count(line.chars().count() + 1),
        text: Arc::from(line),
    };
    Diagnostic::error("invalid UTF-8").with_hint("save the file as UTF-8").with_location(location)
}

pub(super) fn file_location(path: &Path) -> SourceLocation {
    SourceLocation { file: Arc::new(path.to_path_buf()), line: 0, column: 0, text: Arc::from("") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8], mode: u32) -> Diagnostic {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tools.yaml");
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        read(&path, true).expect_err("should be refused")
    }

    #[test]
    fn a_file_that_everybody_may_write_is_refused() {
        let diagnostic = refused(b"tools: []\n", 0o666);
        assert!(diagnostic.message.contains("anyone can write"), "{}", diagnostic.message);
        assert!(diagnostic.hint.unwrap().starts_with("chmod o-w"));
    }

    #[test]
    fn a_byte_that_is_not_utf8_is_pointed_at() {
        let location = refused(b"a: 1\nb: \xc3\xa9\xff\n", 0o600).location.unwrap();
        assert_eq!((location.line, location.column), (2, 5));
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let diagnostic = refused(&vec![b'#'; 1 + usize::try_from(MAX_BYTES).unwrap()], 0o600);
        assert!(diagnostic.message.contains("larger than 8.0 MiB"), "{}", diagnostic.message);
    }

    #[test]
    fn a_directory_and_a_missing_file_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let directory = read(dir.path(), true).unwrap_err();
        assert!(directory.message.ends_with("is a directory, not a regular file"));
        let missing = read(&dir.path().join("no.yaml"), true).unwrap_err();
        assert!(missing.message.ends_with("no such file or directory"), "{}", missing.message);
    }
}
