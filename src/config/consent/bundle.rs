//! The bundle a person is asked to trust: a project's files, code, programs and overrides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::decision::ProjectRecord;
use super::seal::BoundFile;
use crate::config::node::{ConfigNode, NodeValue};
use crate::util::hex::hex;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRecord {
    pub name: String,
    pub file: String,
    pub digest: String,
    /// What it would do: one line, then details.
    pub lines: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// The configuration files by their paths relative to the root, with a hash of their values.
    /// Comments and layout are not part of it.
    pub files: BTreeMap<String, BoundFile>,
    pub entries: Vec<EntryRecord>,
    pub code: BTreeMap<PathBuf, BoundFile>,
    /// Where the programs of entries were found and which directories they use, with links
    /// resolved, by `entry: program` and `entry: reads`.
    #[serde(rename = "resolved")]
    pub resolved_paths: BTreeMap<String, PathBuf>,
    #[serde(rename = "replaces")]
    pub replaced_names: Vec<String>,
    /// The user's own credentials that the project's entries name, with a hash of what the user
    /// defines them as; empty if not defined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    File(String),
    Code(PathBuf),
    Resolved(String, PathBuf),
    /// The user or the project has added an entry with this name.
    Replaces(String),
    Credential(String),
}

impl Bundle {
    /// The ways in which this is not covered by a record: of the same root, or an empty one that
    /// allows no change.
    pub fn differences(&self, record: &ProjectRecord) -> Vec<Difference> {
        let trusted = &record.bundle;
        // A missing file removes its entries, which is no reason to ask; but its content
        // may have been why another entry was harmless, so it counts.
        let names: BTreeSet<&String> = self.files.keys().chain(trusted.files.keys()).collect();
        let changed =
            names.into_iter().filter(|name| self.files.get(*name) != trusted.files.get(*name));
        let mut differences: Vec<_> = changed.cloned().map(Difference::File).collect();
        differences.extend(self.code_differences(record));
        let replaced = self.replaced_names.iter();
        let replaced = replaced.filter(|name| !trusted.replaced_names.contains(name));
        differences.extend(replaced.cloned().map(Difference::Replaces));
        for (handle, now) in &self.credentials {
            if trusted.credentials.get(handle) != Some(now) {
                differences.push(Difference::Credential(handle.clone()));
            }
        }
        differences
    }

    pub(super) fn code_differences(&self, record: &ProjectRecord) -> Vec<Difference> {
        let ProjectRecord { root, bundle: trusted, allows_code_changes, .. } = record;
        let mut differences = Vec::new();
        for (path, now) in &self.code {
            let before = trusted.code.get(path);
            let authored =
                |file: &BoundFile| *allows_code_changes && file.resolved.starts_with(root);
            if before != Some(now) && !(authored(now) && before.is_none_or(authored)) {
                differences.push(Difference::Code(path.clone()));
            }
        }
        for (use_of, now) in &self.resolved_paths {
            if trusted.resolved_paths.get(use_of) != Some(now) {
                differences.push(Difference::Resolved(use_of.clone(), now.clone()));
            }
        }
        differences
    }

    /// One hash over the whole bundle, used to remember a refusal.
    pub fn digest(&self) -> String {
        let mut content = self.clone();
        content.code.values_mut().for_each(|file| file.stamp = None);
        let text = serde_json::to_vec(&content).unwrap_or_default();
        hex(&Sha256::digest(text))
    }

    /// The hashes of all code, by its path with links resolved.
    pub fn manifest(&self) -> BTreeMap<PathBuf, String> {
        let hashed = |file: &BoundFile| Some((file.resolved.clone(), file.sha256.clone()?));
        self.code.values().filter_map(hashed).collect()
    }
}

/// A hash of the content of a file or entry: its values and keys in order, without positions.
pub(super) fn digest_of(node: &ConfigNode) -> String {
    let mut hash = Sha256::new();
    hash_node(node, &mut hash);
    hex(&hash.finalize())
}

/// Every part is prefixed with its length, so that no text can move from one part to the next.
fn hash_node(node: &ConfigNode, hash: &mut Sha256) {
    let mut text = |tag: u8, text: &str| {
        hash.update([tag]);
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    match &node.value {
        NodeValue::Null => text(b'0', ""),
        NodeValue::Bool(value) => text(b'b', if *value { "1" } else { "0" }),
        NodeValue::Number(number) => text(b'n', &number.to_string()),
        NodeValue::Text(value) => text(b't', value),
        NodeValue::List(items) => {
            text(b'l', &items.len().to_string());
            for item in items.iter() {
                hash_node(item, hash);
            }
        }
        NodeValue::Map(pairs) => {
            text(b'm', &pairs.len().to_string());
            for (key, value) in pairs.iter() {
                hash.update((key.text.len() as u64).to_be_bytes());
                hash.update(key.text.as_bytes());
                hash_node(value, hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    fn digest(text: &str) -> String {
        digest_of(&parse(&SourceText::new("f", text), text).unwrap())
    }

    #[test]
    fn layout_and_comments_are_no_change_and_every_value_is() {
        let base = digest("a: { b: [1, x] }\n");
        assert_eq!(base, digest("# why\na:\n  b:\n    - 1\n    - x\n"));
        for other in
            ["a: { b: ['1', x] }", "a: { b: [1, 'x '] }", "a: { c: [1, x] }", "a: { b: [x, 1] }"]
        {
            assert_ne!(base, digest(other), "{other}");
        }
        assert_ne!(digest("[ab, c]"), digest("[a, bc]"));
    }

    #[test]
    fn code_of_its_author_may_change_and_programs_may_not() {
        let file = |to: &str, sha: &str| BoundFile {
            resolved: to.into(),
            sha256: Some(sha.to_owned()),
            stamp: None,
        };
        let bundle = |code: BoundFile, program: &str| Bundle {
            code: BTreeMap::from([(code.resolved.clone(), code)]),
            resolved_paths: BTreeMap::from([("t: git".to_owned(), program.into())]),
            ..Bundle::default()
        };
        let trusted = |allows_code_changes| ProjectRecord {
            root: "/p".into(),
            bundle: bundle(file("/p/a.py", "1"), "/usr/bin/git"),
            allows_code_changes,
            ..ProjectRecord::default()
        };
        let changed = bundle(file("/p/a.py", "2"), "/usr/bin/git");
        assert_eq!(changed.differences(&trusted(false)).len(), 1);
        assert_eq!(changed.differences(&trusted(true)), []);
        let moved = bundle(file("/p/a.py", "1"), "/p/git");
        assert_eq!(moved.differences(&trusted(true)).len(), 1);
        let outside = bundle(file("/q/a.py", "2"), "/usr/bin/git");
        assert_eq!(outside.differences(&trusted(true)).len(), 1);
    }

    #[test]
    fn another_definition_of_a_credential_is_a_difference() {
        let bundle = |digest: &str| Bundle {
            credentials: BTreeMap::from([("mine".to_owned(), digest.to_owned())]),
            ..Bundle::default()
        };
        let changes = |bundle_before: Bundle| {
            let record = ProjectRecord { bundle: bundle_before, ..ProjectRecord::default() };
            bundle("1").differences(&record)
        };
        let difference = [Difference::Credential("mine".to_owned())];
        assert_eq!(changes(bundle("1")), []);
        assert_eq!(changes(bundle("2")), difference);
        assert_eq!(changes(Bundle::default()), difference);
    }
}
