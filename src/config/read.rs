//! A file → its text, if it is one that may be trusted to be what it seems.
//!
//! Owns: the limits and the ownership rules of a configuration file. Never does: understand it.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use super::node::SourceText;
use crate::model::{Place, Problem};

/// The largest file that is read: room for some 25,000 tools.
pub const MAX_BYTES: u64 = 8 << 20;

/// Reads a configuration file of at most [`MAX_BYTES`]. `named` says that a person named it, which
/// allows a pipe.
///
/// # Errors
/// When it cannot be read, is too large, is not UTF-8, is writable by everybody or belongs to
/// another user who is not root.
pub fn read(path: &Path, named: bool) -> Result<(Arc<SourceText>, String), Problem> {
    let shown = path.display();
    let failed = |why: std::io::Error| {
        Problem::error(format!("cannot read {shown}: {}", reason(&why))).at(place(path))
    };
    // Before opening, because opening a pipe waits for its other end.
    let meta = std::fs::metadata(path).map_err(failed)?;
    check(path, &meta, named)?;
    let file = File::open(path).map_err(failed)?;
    check(path, &file.metadata().map_err(failed)?, named)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large(path));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((SourceText::new(path, &text), text)),
        Err(error) => Err(not_utf8(path, &error)),
    }
}

fn check(path: &Path, meta: &Metadata, named: bool) -> Result<(), Problem> {
    let shown = path.display();
    if meta.is_dir() {
        return Err(Problem::error(format!("{shown} is a directory")).at(place(path)));
    }
    if !meta.is_file() {
        if named {
            return Ok(());
        }
        return Err(Problem::error(format!("{shown} is not a regular file")).at(place(path)));
    }
    if meta.len() > MAX_BYTES {
        return Err(too_large(path));
    }
    if meta.permissions().mode() & 0o002 != 0 {
        return Err(Problem::error(format!("{shown} is refused: everybody may write to it"))
            .hint(format!("chmod o-w {shown}"))
            .at(place(path)));
    }
    let owner = meta.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(Problem::error(format!(
            "{shown} is refused: it belongs to another user (uid {owner})"
        ))
        .hint("take it over with chown, or copy it")
        .at(place(path)));
    }
    Ok(())
}

fn too_large(path: &Path) -> Problem {
    let limit = crate::util::units::show_size(MAX_BYTES);
    Problem::error(format!("{} is larger than {limit}", path.display())).at(place(path))
}

fn not_utf8(path: &Path, error: &std::string::FromUtf8Error) -> Problem {
    let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
    let valid = String::from_utf8_lossy(valid);
    let line = valid.rsplit('\n').next().unwrap_or_default();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let place = Place {
        file: Arc::new(path.to_path_buf()),
        line: count(valid.matches('\n').count() + 1),
        column: count(line.chars().count() + 1),
        text: Arc::from(line),
    };
    Problem::error("this byte is not UTF-8").hint("save the file as UTF-8").at(place)
}

/// The place of a whole file.
pub(super) fn place(path: &Path) -> Place {
    Place { file: Arc::new(path.to_path_buf()), line: 0, column: 0, text: Arc::from("") }
}

/// The system's own words without Rust's decoration.
pub(super) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8], mode: u32) -> Problem {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tools.yaml");
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        read(&path, true).expect_err("should be refused")
    }

    #[test]
    fn a_file_that_everybody_may_write_is_refused() {
        let problem = refused(b"tools: []\n", 0o666);
        assert!(problem.message.contains("everybody may write"), "{}", problem.message);
        assert!(problem.hint.unwrap().starts_with("chmod o-w"));
    }

    #[test]
    fn a_byte_that_is_not_utf8_is_pointed_at() {
        let place = refused(b"a: 1\nb: \xc3\xa9\xff\n", 0o600).place.unwrap();
        assert_eq!((place.line, place.column), (2, 5));
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let problem = refused(&vec![b'#'; 1 + usize::try_from(MAX_BYTES).unwrap()], 0o600);
        assert!(problem.message.contains("larger than 8.0 MiB"), "{}", problem.message);
    }

    #[test]
    fn a_directory_and_a_missing_file_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path(), true).unwrap_err().message.ends_with("is a directory"));
        let missing = read(&dir.path().join("no.yaml"), true).unwrap_err();
        assert!(missing.message.ends_with("no such file or directory"), "{}", missing.message);
    }
}
