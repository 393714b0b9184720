//! Whether a sandbox may have made a program fail: which directory to allow it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::util::confine::{self, Confinement};
use crate::util::process::Program;

/// Exit codes by which a shell says that a program could not be started.
const NOT_STARTED: [i32; 2] = [126, 127];
/// The most of the first line of a script that is read, in bytes.
const MAX_LINE_BYTES: u64 = 512;

/// A hint for a program that could not be started within its confinement.
pub(super) fn for_start(program: &Program, confinement: &Confinement) -> Option<String> {
    confinement.level.confines().then(|| hint(closed_path(program, confinement).as_deref()))
}

/// A hint for a program that ended like this: when what it was given lies where it may not look, or
/// if it could not start something itself.
pub(super) fn for_exit(
    program: &Program,
    confinement: &Confinement,
    status: ExitStatus,
) -> Option<String> {
    if status.success() || status.signal().is_some() || !confinement.level.confines() {
        return None;
    }
    let closed = closed_path(program, confinement);
    let may_be_start = status.code().is_some_and(|code| NOT_STARTED.contains(&code));
    (closed.is_some() || may_be_start).then(|| hint(closed.as_deref()))
}

fn hint(closed: Option<&Path>) -> String {
    let way = "'level: limits' of 'sandbox' restricts no files";
    match closed {
        Some(path) => {
            let directory = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
            format!(
                "its sandbox does not let it read '{}': list '{}' under 'read' of 'sandbox'; {way}",
                path.display(),
                directory.display()
            )
        }
        None => format!(
            "its sandbox may be the reason: 'toolhost inspect' shows what it may access, and 'read' \
             and 'write' of 'sandbox' allow more; {way}"
        ),
    }
}

/// The first existing file of a command line that the program may not read: the program, the
/// interpreter in its first line, or a path among its arguments.
fn closed_path(program: &Program, confinement: &Confinement) -> Option<PathBuf> {
    let interpreter = interpreter_of(&program.path);
    let named = program.args.iter().filter(|word| word.contains('/'));
    let named = named.map(|word| program.cwd.join(word));
    let all = std::iter::once(program.path.clone()).chain(interpreter).chain(named);
    all.into_iter().find(|path| path.exists() && !confine::can_read(confinement, path))
}

fn interpreter_of(script: &Path) -> Option<PathBuf> {
    let file = std::fs::File::open(script).ok()?;
    let mut line = Vec::new();
    BufReader::new(file.take(MAX_LINE_BYTES)).read_until(b'\n', &mut line).ok()?;
    let text = std::str::from_utf8(line.strip_prefix(b"#!")?).ok()?;
    text.split_whitespace().next().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_interpreter_of_a_script_is_the_first_word_of_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("run");
        std::fs::write(&script, "#! /opt/x/sh -e\necho\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(interpreter_of(&script), Some("/opt/x/sh".into()));
        std::fs::write(&script, "echo").unwrap();
        assert_eq!(interpreter_of(&script), None);
    }
}
