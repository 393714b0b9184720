//! Pin files: where they are, reading and writing them, and the entries they apply to.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use crate::audit::Masker;
use crate::catalogue::pins::{
    ConfiguredServer, PinContext, PinFileContent, PinGroup, PinnedEntry, Pins,
};
use crate::config::environment::Environment;
use crate::config::spec::Configuration;
use crate::model::{Error, Layer, Origin};
use crate::providers::mcp::identity;
use crate::util::atomic_file::{self, FileMode};
use crate::util::json::pretty;
use crate::util::regular_file::{self, UnreadableFile, is_absent};

pub const PIN_FILE_NAME: &str = "pins.json";
/// Maximum size of a file of pins in bytes.
const MAX_BYTES: u64 = 32 << 20;

#[derive(Debug, thiserror::Error)]
enum PinFileError {
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    #[error(transparent)]
    Invalid(#[from] serde_json::Error),
    #[error("version {0} is not supported")]
    UnknownVersion(u32),
}

/// A file of pins, which need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinFile {
    pub path: PathBuf,
    /// Whether it is the user's own, in the state directory: it names the files its pins apply to,
    /// and it affects calls, so no other user may write to it.
    pub own: bool,
}

impl PinFile {
    /// The user's own file; `None` without a state directory.
    pub fn own(environment: &dyn Environment) -> Option<Self> {
        Some(Self { path: environment.state_dir()?.join(PIN_FILE_NAME), own: true })
    }

    pub fn named(path: PathBuf) -> Self {
        Self { path, own: false }
    }

    /// Reads the file; `None` if it does not exist.
    pub fn read(&self) -> Result<Option<PinFileContent>, Error> {
        self.content().map_err(|why| {
            let shown = self.path.display();
            Error::config(format!("the pins in {shown} cannot be used: {why}"))
                .with_hint("repair the file, or remove it and pin again with `toolhost pin`")
        })
    }

    fn content(&self) -> Result<Option<PinFileContent>, PinFileError> {
        let bytes = if self.own {
            regular_file::own_bytes(&self.path, MAX_BYTES)?
        } else {
            match regular_file::bytes(&self.path, MAX_BYTES) {
                // If the file cannot exist, nothing was pinned.
                Err(UnreadableFile::System(error)) if is_absent(&error) => None,
                bytes => Some(bytes?),
            }
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let content: Content = serde_json::from_slice(&bytes)?;
        match content.version {
            1 => Ok(Some(PinFileContent { groups: content.pins })),
            other => Err(PinFileError::UnknownVersion(other)),
        }
    }

    /// Changes the file, starting from its current content; one writer at a time.
    pub fn change(&self, change: impl FnOnce(&mut PinFileContent)) -> Result<(), Error> {
        let failed = |why: &std::io::Error| {
            Error::config(format!("cannot write the pins to {}: {why}", self.path.display()))
        };
        let turn = atomic_file::lock(&self.path).map_err(|why| failed(&why))?;
        let mut book = self.read()?.unwrap_or_default();
        change(&mut book);
        book.normalize();
        let mode = if self.own { FileMode::Private } else { FileMode::Kept(0o666) };
        atomic_file::replace(&self.path, text(&book).as_bytes(), mode)
            .map_err(|why| failed(&why))?;
        drop(turn);
        Ok(())
    }
}

/// The pins in the user's own file, as far as they are for something configured.
pub(super) fn load(
    configuration: &Configuration,
    environment: &dyn Environment,
    masker: &Masker,
) -> Result<Pins, Error> {
    let book = PinFile::own(environment).map(|file| file.read()).transpose()?.flatten();
    Ok(Pins::new(Arc::new(known(configuration, masker)), book.unwrap_or_default()))
}

fn known(configuration: &Configuration, masker: &Masker) -> PinContext {
    let mut files: HashMap<PathBuf, String> = HashMap::new();
    let mut real = |path: &PathBuf| {
        let file = files.entry(path.clone()).or_insert_with(|| {
            // The name of a directory of more files may contain a variable.
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            masker.text(&path.display().to_string())
        });
        file.clone()
    };
    let servers = configuration.servers.iter().map(|server| {
        let endpoint = masker.text(&identity(&server.endpoint));
        let file = real(&server.location.file);
        let entry = PinnedEntry::of(&server.origin, &|text| masker.text(text));
        (server.name.clone(), ConfiguredServer { file, endpoint, entry, drift: server.drift() })
    });
    let servers = servers.collect();
    // A file that lost its last tool still counts as one whose tools were pinned.
    let mut own_files = BTreeSet::new();
    for file in &configuration.files {
        let path = real(&file.path);
        if file.layer == Layer::User {
            own_files.insert(path);
        }
    }
    for tool in &configuration.tools {
        if let Origin::File(place) = &tool.definition.origin {
            real(&place.file);
        }
        real(&tool.location.file);
    }
    PinContext { servers, files, own_files }
}

#[derive(Deserialize)]
struct Content {
    version: u32,
    pins: Vec<PinGroup>,
}

fn text(book: &PinFileContent) -> String {
    let groups: Vec<_> = book.groups.iter().filter_map(|g| serde_json::to_value(g).ok()).collect();
    pretty(&json!({ "version": 1, "pins": groups })) + "\n"
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::catalogue::pins::Pin;
    use crate::model::{ToolDefinition, ToolName, ToolSource};

    fn pin(description: &str) -> Pin {
        let name = ToolName::of("s", "t");
        let mut tool =
            ToolDefinition::new(name, ToolSource::Mcp, "mcp", Origin::Server("s".into()));
        tool.description = Some(description.to_owned());
        Pin::of(&tool, &|text| text.to_owned())
    }

    fn written(file: &PinFile) -> String {
        std::fs::read_to_string(&file.path).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_in_the_same_order_and_without_hidden_characters() {
        let dir = tempfile::tempdir().unwrap();
        let file = PinFile { path: dir.path().join("state/pins.json"), own: true };
        assert!(file.read().unwrap().is_none());
        let add = |names: &[&str]| {
            file.change(|book| {
                for name in names {
                    let group = book.group_mut(Some(name), Some("/p/mcp.yaml"));
                    group.tools.insert("t".to_owned(), pin("a\u{202e}b\u{1b}[2J\u{e0041}"));
                }
            })
            .unwrap();
        };
        add(&["b", "a"]);
        let first = written(&file);
        assert!(first.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{first}");
        let mode = std::fs::metadata(&file.path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        add(&["a", "b"]);
        assert_eq!(written(&file), first);
        let book = file.read().unwrap().unwrap();
        let names: Vec<_> = book.groups.iter().map(|g| g.server.as_deref().unwrap()).collect();
        assert_eq!(names, ["a", "b"]);
        let value = book.groups[0].tools["t"].value().unwrap();
        assert_eq!(value["description"], "a\u{202e}b\u{1b}[2J\u{e0041}");
    }

    #[test]
    fn nothing_is_taken_from_a_file_that_is_damaged_foreign_or_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = PinFile { path: dir.path().join("pins.json"), own: true };
        for text in ["", "nonsense", "{\"version\":2,\"pins\":[]}", "{\"version\":1}"] {
            std::fs::write(&file.path, text).unwrap();
            std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(0o600)).unwrap();
            let error = file.read().unwrap_err();
            assert_eq!(error.kind().exit_code(), 9, "{text}");
            assert!(file.change(|_| {}).is_err());
        }
        std::fs::write(&file.path, "{\"version\":1,\"pins\":[]}").unwrap();
        assert!(file.read().unwrap().is_some());
        std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(file.read().unwrap_err().message().contains("other users can write"));
        assert!(PinFile::named(file.path.clone()).read().unwrap().is_some());
        assert!(PinFile::named(dir.path().to_path_buf()).read().is_err());
    }
}
