//! The files behind a module: where it is, and a hash of what importing it may run.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::util::regular;

/// The most files of a package that are read.
const MOST_FILES: usize = 2_000;
/// The most bytes of them.
const MOST_BYTES: u64 = 64 << 20;
/// How deep directories are followed.
const DEEPEST: usize = 16;

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

/// Lines that stand for the code of a module: the hash of its file, or of all files of the package
/// it is in. No lines when it is not below the root.
pub(super) fn fingerprint(root: &Path, module: &str) -> Vec<String> {
    let top = module.split('.').next().unwrap_or_default();
    let mut found = Found::default();
    if top.is_empty() || top.contains('/') {
        return Vec::new();
    }
    // Importing a module runs its packages first, even when the module itself is not there.
    found.directory(&root.join(top), 0);
    let file = root.join(format!("{top}.py"));
    if file.is_file() {
        found.file(file);
    }
    if found.files.is_empty() {
        return Vec::new();
    }
    found.files.sort();
    let (hash, read) = found.hash(root);
    let count = found.files.len();
    let mut lines = vec![format!(
        "code: {count} {} of {top}, sha256 {hash}",
        if count == 1 { "file" } else { "files" }
    )];
    if found.too_many || read > MOST_BYTES {
        lines.push(
            "warning: the package is too large to be read whole: changes may go unnoticed"
                .to_owned(),
        );
    }
    lines
}

#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    too_many: bool,
}

impl Found {
    fn directory(&mut self, directory: &Path, depth: usize) {
        if depth > DEEPEST {
            self.too_many = true;
            return;
        }
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                self.directory(&path, depth + 1);
            } else if matches!(path.extension().and_then(|e| e.to_str()), Some("py" | "so")) {
                self.file(path);
            }
            if self.too_many {
                return;
            }
        }
    }

    fn file(&mut self, path: PathBuf) {
        self.too_many |= self.files.len() == MOST_FILES;
        if !self.too_many {
            self.files.push(path);
        }
    }

    /// The hash over names and contents, and how many bytes there are.
    fn hash(&self, root: &Path) -> (String, u64) {
        let mut hash = Sha256::new();
        let mut read = 0;
        for file in &self.files {
            let name = file.strip_prefix(root).unwrap_or(file).as_os_str().as_encoded_bytes();
            let size = std::fs::metadata(file).map_or(0, |meta| meta.len());
            read += size;
            let content = if read > MOST_BYTES {
                Vec::new()
            } else {
                regular::bytes(file, MOST_BYTES).unwrap_or_default()
            };
            for part in [name, &size.to_be_bytes(), &content] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        let hex = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
            for digit in [byte >> 4, byte & 15] {
                hex.extend(char::from_digit(u32::from(digit), 16));
            }
            hex
        });
        (hex, read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_hash_follows_every_file_of_the_package() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/__pycache__")).unwrap();
        std::fs::write(dir.path().join("a/x.py"), "1").unwrap();
        std::fs::write(dir.path().join("a/y.py"), "2").unwrap();
        let of = || fingerprint(dir.path(), "a.x").join("\n");
        let before = of();
        assert!(before.starts_with("code: 2 files of a, sha256 "), "{before}");
        std::fs::write(dir.path().join("a/__pycache__/x.pyc"), "never read").unwrap();
        std::fs::write(dir.path().join("other.py"), "not of the package").unwrap();
        assert_eq!(of(), before);
        std::fs::write(dir.path().join("a/y.py"), "3").unwrap();
        assert_ne!(of(), before);
        assert!(fingerprint(dir.path(), "json").is_empty());
    }
}
