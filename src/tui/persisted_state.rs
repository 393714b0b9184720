//! The state that the console keeps between runs, and its file format.
//!
//! Owns: which things, the bounds, the version. Never does: read or write the file (effects
//! does), or know what is secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::layout::PaneShares;
use crate::model::JsonObject;
use crate::util::units::show_size;

/// The form of the file. One of a later version is left alone.
const VERSION: u32 = 1;
/// How many tools' last arguments are remembered.
pub const TOOLS: usize = 200;
/// The most bytes of the last arguments of one tool, as JSON; longer ones are not remembered.
pub const LONGEST: usize = 4 << 10;

/// How many projects are remembered.
const PROJECTS: usize = 50;
/// The most bytes of the file; of more the projects are left out that were used longest ago.
const MAX_BYTES: usize = 2 << 20;

/// The file: the colours, which are the same everywhere, and what belongs to each project.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StateFile {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    theme: Option<SavedColours>,
    /// By the directory of the project, the newest last.
    #[serde(default)]
    projects: IndexMap<String, PersistedState>,
}

/// What one session of the console leaves for the next one in the same project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PersistedState {
    /// The view that was shown, by its title in lower case.
    #[serde(default)]
    pub view: String,
    /// The order of the tools, by its title.
    #[serde(default)]
    pub sort: String,
    /// The filter of the tool list.
    #[serde(default)]
    pub filter: String,
    /// The pane sizes that the user changed, by the name of their view.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub panes: BTreeMap<String, PaneShares>,
    /// The colours chosen in the console, in any project.
    #[serde(skip)]
    pub theme: Option<SavedColours>,
    /// The last arguments of tools by their full names, the newest last. A tool of this name in
    /// another project is another tool.
    #[serde(default)]
    pub arguments: IndexMap<String, SavedArguments>,
}

/// Colours that were chosen in the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedColours {
    /// The name of the chosen theme.
    pub chosen: String,
    /// Those of the settings at that time: when other ones are set later, these win.
    pub over: String,
}

/// The last arguments of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SavedArguments {
    /// The arguments of the newest call, without secrets once written.
    pub arguments: JsonObject,
    /// The schema that says which of them are secret; `None` when those were taken out already.
    #[serde(skip)]
    pub schema: Option<Arc<Value>>,
}

/// Why the file of a former console cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadStateError {
    /// Not a file that a console writes: a directory, a device, or larger than the limit.
    #[error("not a regular file of at most {}", show_size(*.0))]
    NotOurs(u64),
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is not JSON of the right shape.
    #[error("damaged file ({0})")]
    Damaged(#[from] serde_json::Error),
    /// The file has another format version.
    #[error("written by another version of toolhost (format {0})")]
    OtherVersion(u32),
}

impl StateFile {
    fn read(text: &str) -> Result<Self, ReadStateError> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let head: Head = serde_json::from_str(text)?;
        if head.version != VERSION {
            return Err(ReadStateError::OtherVersion(head.version));
        }
        Ok(serde_json::from_str(text)?)
    }
}

impl PersistedState {
    /// Reads what the text of the file has of a project, which is named by its directory.
    ///
    /// # Errors
    /// When it was not written by [`text`](Self::text), or by another version.
    pub fn read(text: &str, project: &str) -> Result<Self, ReadStateError> {
        let mut file = StateFile::read(text)?;
        let mut memory = file.projects.shift_remove(project).unwrap_or_default();
        memory.theme = file.theme;
        memory.bound();
        Ok(memory)
    }

    /// The text of the file with this in it; what it had of other projects stays.
    pub fn text(&self, project: &str, before: Option<&str>) -> String {
        let before = before.and_then(|text| StateFile::read(text).ok());
        let mut file = before.unwrap_or_default();
        (file.version, file.theme) = (VERSION, self.theme.clone());
        file.projects.shift_remove(project);
        file.projects.insert(project.to_owned(), self.clone());
        loop {
            let text = serde_json::to_string(&file).unwrap_or_default() + "\n";
            let is_small = text.len() <= MAX_BYTES && file.projects.len() <= PROJECTS;
            if is_small || file.projects.len() <= 1 {
                return text;
            }
            file.projects.shift_remove_index(0);
        }
    }

    /// Remembers the arguments of a tool as its newest ones.
    pub fn save_arguments(
        &mut self,
        tool: &str,
        arguments: &JsonObject,
        schema: Option<Arc<Value>>,
    ) {
        let kept = SavedArguments { arguments: arguments.clone(), schema };
        self.arguments.shift_remove(tool);
        self.arguments.insert(tool.to_owned(), kept);
        self.bound();
    }

    fn bound(&mut self) {
        let over = self.arguments.len().saturating_sub(TOOLS);
        self.arguments.drain(..over);
    }

    /// Takes out what must not be written: `masked` says what is left of the arguments of a tool
    /// where they are secret. A value that it changes is not kept at all, because what stands in
    /// its place is nothing to call with.
    #[must_use]
    pub fn without_secrets(mut self, masked: impl Fn(&JsonObject, &Value) -> JsonObject) -> Self {
        for kept in self.arguments.values_mut() {
            if let Some(schema) = kept.schema.take() {
                let harmless = masked(&kept.arguments, &schema);
                kept.arguments.retain(|key, value| harmless.get(key) == Some(value));
            }
        }
        self.arguments.retain(|_, kept| {
            serde_json::to_string(&kept.arguments).is_ok_and(|text| text.len() <= LONGEST)
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn what_is_written_reads_back_without_what_is_secret_or_too_long() {
        let mut memory = PersistedState { view: "servers".into(), ..PersistedState::default() };
        let schema = Some(Arc::new(json!({ "type": "object" })));
        memory.save_arguments(
            "a",
            &object(&json!({ "text": "milk", "password": "x" })),
            schema.clone(),
        );
        memory.save_arguments("b", &object(&json!({ "text": "x".repeat(LONGEST) })), schema);
        let masked = |arguments: &JsonObject, _: &Value| {
            let hide = |(key, value): (&String, &Value)| {
                let hidden = if key == "password" { json!("***") } else { value.clone() };
                (key.clone(), hidden)
            };
            arguments.iter().map(hide).collect()
        };
        let text = memory.without_secrets(masked).text("/work/a", None);
        assert!(!text.contains("password"), "{text}");
        let again = PersistedState::read(&text, "/work/a").unwrap();
        assert_eq!(again.view, "servers");
        assert_eq!(again.arguments.len(), 1);
        assert_eq!(
            Value::Object(again.arguments["a"].arguments.clone()),
            json!({ "text": "milk" })
        );
    }

    #[test]
    fn projects_share_nothing_but_the_colours() {
        let theme = SavedColours { chosen: "light".into(), over: "default".into() };
        let mut a = PersistedState { filter: "src:a".into(), ..PersistedState::default() };
        a.save_arguments("build", &object(&json!({ "target": "a" })), None);
        let b = PersistedState {
            view: "trace".into(),
            theme: Some(theme),
            ..PersistedState::default()
        };
        let text = b.text("/b", Some(&a.text("/a", None)));
        let (a_again, b_again) = (
            PersistedState::read(&text, "/a").unwrap(),
            PersistedState::read(&text, "/b").unwrap(),
        );
        assert_eq!((a_again.filter.as_str(), b_again.filter.as_str()), ("src:a", ""));
        assert_eq!((a_again.arguments.len(), b_again.arguments.len()), (1, 0));
        assert_eq!((&a_again.theme, &b_again), (&b.theme, &b));
        assert_eq!(PersistedState::read(&text, "/c").unwrap().view, "");
        // Projects without end do not grow the file without end.
        let many = (0..2 * PROJECTS)
            .fold(String::new(), |text, number| a.text(&format!("/p{number}"), Some(&text)));
        let file = StateFile::read(&many).unwrap();
        assert_eq!(
            (file.projects.len(), file.projects.last().unwrap().0.as_str()),
            (PROJECTS, "/p99")
        );
    }

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        for (text, cause) in [
            ("{", "damaged"),
            (r#"{"version":1,"projects":[]}"#, "damaged"),
            (r#"{"version":7}"#, "another version"),
        ] {
            let error = PersistedState::read(text, "p").unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn only_the_newest_tools_are_kept() {
        let mut memory = PersistedState::default();
        for number in 0..TOOLS + 3 {
            memory.save_arguments(&number.to_string(), &JsonObject::new(), None);
        }
        memory.save_arguments("3", &JsonObject::new(), None);
        assert_eq!(memory.arguments.len(), TOOLS);
        assert_eq!(memory.arguments.first().unwrap().0, "4");
        assert_eq!(memory.arguments.last().unwrap().0, "3");
    }
}
