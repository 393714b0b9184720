//! Reading files at untrusted paths.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use thiserror::Error;

use super::units::show_size;

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum UnreadableFile {
    #[error("{}", reason(.0))]
    System(#[from] io::Error),
    /// Something else than a regular file stands there: what it is.
    #[error("it is {0}, not a regular file")]
    Special(&'static str),
    #[error("other users can write to it")]
    WritableByOthers,
    #[error("it is larger than {}", show_size(*.0))]
    TooLarge(u64),
    /// The content is not valid UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
}

/// Opens a regular file for reading. A pipe, a terminal or another device is neither waited for nor
/// taken as the controlling terminal, and what stands in the file's place between a look and the
/// opening makes no difference.
pub fn open(path: &Path) -> Result<(File, Metadata), UnreadableFile> {
    // A first look spares devices that act on being opened.
    expect_regular(&std::fs::metadata(path)?)?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    expect_regular(&meta)?;
    Ok((file, meta))
}

pub fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, UnreadableFile> {
    contents(open(path)?, limit)
}

/// The same of a file that decides for the user, so that nobody else may write to it; `None` if
/// there is none.
pub fn own_bytes(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, UnreadableFile> {
    let (file, meta) = match open(path) {
        Err(UnreadableFile::System(error)) if is_absent(&error) => return Ok(None),
        opened => opened?,
    };
    if meta.mode() & 0o022 != 0 || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(UnreadableFile::WritableByOthers);
    }
    contents((file, meta), limit).map(Some)
}

/// Whether nothing can be where a file was looked for.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn contents((file, meta): (File, Metadata), limit: u64) -> Result<Vec<u8>, UnreadableFile> {
    if meta.len() > limit {
        return Err(UnreadableFile::TooLarge(limit));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(UnreadableFile::TooLarge(limit));
    }
    Ok(bytes)
}

pub fn text(path: &Path, limit: u64) -> Result<String, UnreadableFile> {
    String::from_utf8(bytes(path, limit)?).map_err(|_| UnreadableFile::NotText)
}

fn expect_regular(meta: &Metadata) -> Result<(), UnreadableFile> {
    special(meta).map_or(Ok(()), |what| Err(UnreadableFile::Special(what)))
}

/// The kind of a special file or directory; `None` for a regular file.
pub fn special(meta: &Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    Some(match () {
        () if kind.is_file() => return None,
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "something else",
    })
}

/// The system's own message without Rust's decoration.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::util::named_pipe;

    fn why(path: &Path) -> String {
        bytes(path, 10).unwrap_err().to_string()
    }

    #[test]
    fn whatever_is_no_regular_file_is_named_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        named_pipe::make(&at("pipe"));
        std::os::unix::fs::symlink(at("pipe"), at("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(why(&at("pipe")), "it is a named pipe, not a regular file");
        assert_eq!(why(&at("link")), "it is a named pipe, not a regular file");
        assert_eq!(why(&at("socket")), "it is a socket, not a regular file");
        assert_eq!(why(dir.path()), "it is a directory, not a regular file");
        assert_eq!(why(Path::new("/dev/tty")), "it is a device, not a regular file");
        assert_eq!(why(Path::new("/dev/zero")), "it is a device, not a regular file");
        assert_eq!(why(&at("none")), "no such file or directory");
    }

    #[test]
    fn a_regular_file_is_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(text(&path, 10).unwrap(), "0123456789");
        assert_eq!(text(&path, 9).unwrap_err().to_string(), "it is larger than 9 B");
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(text(&path, 9).unwrap_err().to_string(), "it is not UTF-8 text");
        // Its length says nothing about what there is to read.
        assert!(matches!(
            bytes(Path::new("/proc/self/status"), 10),
            Err(UnreadableFile::TooLarge(10))
        ));
    }

    #[test]
    fn a_pipe_put_in_the_file_s_place_meanwhile_is_never_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        named_pipe::make(&at("pipe"));
        std::fs::write(at("it"), "text").unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut links = ["pipe", "file"].iter().cycle();
                while !done.load(Ordering::Relaxed) {
                    std::os::unix::fs::symlink(at(links.next().unwrap()), at("next")).unwrap();
                    std::fs::rename(at("next"), at("it")).unwrap();
                }
            });
            for _ in 0..20_000 {
                match bytes(&at("it"), 10) {
                    Ok(bytes) => assert_eq!(bytes, b"text"),
                    Err(UnreadableFile::Special(what)) => assert_eq!(what, "a named pipe"),
                    Err(other) => panic!("{other}"),
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
