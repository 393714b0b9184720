//! `--save`: a result's bytes in files the user named.
//!
//! Owns: the names of several files and writing each of them whole or not at all. Never does: take
//! a name, or a part of one, from a server.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::host::content::extension;
use crate::model::Fault;

/// The files for payloads of these media types: the path itself, or `name-1.ext`, `name-2.ext`, …
/// A name without an extension gets the usual one of a picture, a sound or another file.
pub fn targets(path: &Path, kinds: &[&str]) -> Vec<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let given = path.extension().map(|e| e.to_string_lossy().into_owned());
    // A device or a pipe is what it is.
    let special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    let named = |(index, kind): (usize, &&str)| {
        let number = if kinds.len() > 1 { format!("-{}", index + 1) } else { String::new() };
        match given.as_deref().or_else(|| extension(kind)) {
            Some(extension) => path.with_file_name(format!("{stem}{number}.{extension}")),
            None => path.with_file_name(format!("{stem}{number}")),
        }
    };
    match kinds {
        [_] if special || given.is_some() => vec![path.to_path_buf()],
        kinds => kinds.iter().enumerate().map(named).collect(),
    }
}

/// Checks before a call that its result can be saved there.
///
/// # Errors
/// A usage fault when the path is a directory or stands in none.
pub fn check(path: &Path) -> Result<(), Fault> {
    if path.is_dir() || path.file_name().is_none() {
        return Err(Fault::usage(format!(
            "cannot save to '{}': it is a directory",
            path.display()
        ))
        .hint("name a file inside of it"));
    }
    let directory = parent(path);
    if directory.is_dir() {
        return Ok(());
    }
    Err(Fault::usage(format!(
        "cannot save to '{}': there is no directory '{}'",
        path.display(),
        directory.display()
    )))
}

/// Checks that a file can be made or replaced there, without doing it.
///
/// # Errors
/// As [`check`]; and a usage fault when the system forbids it.
pub fn check_writable(path: &Path) -> Result<(), Fault> {
    check(path)?;
    // A file is replaced by a new one beside it; a device or a pipe is written itself.
    let special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    let written = if special { path.to_path_buf() } else { parent(path) };
    rustix::fs::access(&written, rustix::fs::Access::WRITE_OK).map_err(|errno| {
        let why = io::Error::from(errno);
        Fault::usage(format!("cannot write to '{}': {why}", written.display()))
    })
}

/// Writes a file so that it is either the whole of `bytes` or what it was before.
///
/// # Errors
/// An internal fault that names the file and the system's reason.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    replace(path, bytes).map_err(|error| {
        Fault::internal(format!("cannot write '{}': {error}", path.display()))
            .hint("the call itself was made; its result is lost unless it is printed")
    })
}

/// The same, with the system's reason alone.
///
/// # Errors
/// When the file cannot be written; then it is what it was before.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A device or a pipe (`--save /dev/stdout`) is written, not replaced.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    // A link is followed, so that it stays one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (draft, file) = draft(path)?;
    let written = fill(file, bytes, path).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // The error that is reported is the first one.
        let _unreported = fs::remove_file(&draft);
    }
    written
}

fn fill(mut file: File, bytes: &[u8], path: &Path) -> io::Result<()> {
    file.write_all(bytes)?;
    if let Ok(found) = fs::metadata(path) {
        file.set_permissions(found.permissions())?;
    }
    Ok(())
}

/// A new file beside `path`; never one that exists.
fn draft(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for attempt in 0..16 {
        let draft = path.with_file_name(format!(".{name}.{}-{attempt}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&draft) {
            Ok(file) => return Ok((draft, file)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_payloads_get_numbers() {
        let named = |path: &str, kinds: &[&str]| -> Vec<String> {
            let found = targets(Path::new(path), kinds);
            found.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(named("a/pic.png", &["image/gif"]), ["a/pic.png"]);
        assert_eq!(named("a/pic.png", &["x", "y"]), ["a/pic-1.png", "a/pic-2.png"]);
        assert_eq!(named("out", &["text/plain", "text/plain"]), ["out-1", "out-2"]);
    }

    #[test]
    fn the_type_gives_an_extension_where_there_is_none() {
        let named = |kinds: &[&str]| targets(Path::new("a/out"), kinds);
        assert_eq!(named(&["image/png"]), [Path::new("a/out.png")]);
        assert_eq!(named(&["AUDIO/MPEG; x=1"]), [Path::new("a/out.mp3")]);
        assert_eq!(
            named(&["text/plain", "audio/wav"]),
            [Path::new("a/out-1"), Path::new("a/out-2.wav")]
        );
        // A server's own words never get into a name.
        for kind in ["image/../../etc/passwd", "image/x-sh", "", "application/x-evil.sh"] {
            assert_eq!(named(&[kind]), [Path::new("a/out")], "{kind}");
        }
        assert_eq!(targets(Path::new("/dev/null"), &["image/png"]), [Path::new("/dev/null")]);
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result.txt");
        fs::write(&path, "old").unwrap();
        write(&path, b"new\0").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new\0");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn directories_are_refused_before_the_call() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check(dir.path()).is_err());
        assert!(check(&dir.path().join("missing/file")).is_err());
        assert!(check(&dir.path().join("file")).is_ok());
        assert!(check(Path::new("file")).is_ok());
    }
}
