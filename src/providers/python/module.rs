//! Names of modules and functions, and the files of modules.

use std::path::{Path, PathBuf};

/// Whether a text is names with dots between them, as Python understands names.
pub(super) fn is_dotted(text: &str) -> bool {
    let is_name = |name: &str| {
        name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && name.chars().next().is_some_and(|c| !c.is_numeric())
    };
    text.split('.').all(is_name)
}

/// The file of a module below `root`: `a/b.py` or `a/b/__init__.py` for `a.b`.
pub(super) fn file_of(root: &Path, module: &str) -> Option<PathBuf> {
    // A name may come straight from a file, so that it must not lead out of the root.
    if module.is_empty() || module.contains('/') || module.split('.').any(str::is_empty) {
        return None;
    }
    let inside: PathBuf = module.split('.').collect();
    let package = root.join(&inside).join("__init__.py");
    // Python prefers the package.
    [package, root.join(&inside).with_extension("py")].into_iter().find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_python_has() {
        for good in ["a", "a.b", "_x1.y", "größe"] {
            assert!(is_dotted(good), "{good}");
        }
        for bad in ["", ".", "a.", "1a", "a-b", "a/b.py", "a b", "f()"] {
            assert!(!is_dotted(bad), "{bad}");
        }
    }

    #[test]
    fn a_module_is_a_file_or_a_package_and_stays_below_the_root() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        for file in ["a/__init__.py", "a/b/__init__.py", "a/c.py", "top.py"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let of = |module| file_of(dir.path(), module).is_some();
        assert!(of("a") && of("a.b") && of("a.c") && of("top"));
        assert!(!of("a.d") && !of("") && !of("..top") && !of("/etc/x") && !of("a/c"));
    }
}
