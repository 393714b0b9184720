//! Validated relative paths of calls.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::errors;
use crate::model::Error;

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
        let out = || errors::outside(text, &roots[0].display().to_string());
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
