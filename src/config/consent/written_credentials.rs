//! Credentials as written, for the trust question about a project that names some.

use std::collections::BTreeMap;

use super::bundle::digest_of;
use crate::config::node::ConfigNode;
use crate::config::resolve::auth::AuthKeys;
use crate::config::sources::SourceFile;
use crate::config::{references, typed};

#[derive(Debug, Default)]
pub(super) struct WrittenCredentials {
    project: BTreeMap<String, WrittenCredential>,
    own: BTreeMap<String, WrittenCredential>,
}

fn contacted(node: &ConfigNode) -> impl Iterator<Item = String> {
    let addresses = typed::peek::<AuthKeys>(node).map(AuthKeys::addresses);
    addresses.unwrap_or_default().into_iter().map(|address| format!("contacts {address}"))
}

#[derive(Debug)]
struct WrittenCredential {
    kind: String,
    references: Vec<String>,
    digest: String,
}

impl WrittenCredentials {
    /// The handles of all files; of several with the same name, the first.
    pub fn of(files: &[SourceFile]) -> Self {
        let mut credentials = Self::default();
        for file in files {
            let handles = file.root.get("credentials").map(ConfigNode::entries);
            let map =
                if file.is_project() { &mut credentials.project } else { &mut credentials.own };
            for (key, node) in handles.unwrap_or_default() {
                map.entry(key.text.to_string()).or_insert_with(|| WrittenCredential {
                    kind: node.get("type").and_then(ConfigNode::text).unwrap_or("?").to_owned(),
                    references: references::of(node).into_keys().chain(contacted(node)).collect(),
                    digest: digest_of(node),
                });
            }
        }
        credentials
    }

    /// What an entry of the project that names these handles would use, as human-readable lines;
    /// and the user's own among them, with a digest of their definition.
    pub fn used_by(&self, entry: &ConfigNode) -> (Vec<String>, BTreeMap<String, String>) {
        let handles = entry.get("credentials");
        let handles = handles.map(|node| node.as_texts().unwrap_or_default()).unwrap_or_default();
        let (mut lines, mut own) = (Vec::new(), BTreeMap::new());
        for handle in handles {
            let (whose, credential) = match (self.project.get(&handle), self.own.get(&handle)) {
                (Some(credential), _) => ("the credential", Some(credential)),
                (None, credential) => {
                    let digest = credential.map(|credential| credential.digest.clone());
                    own.insert(handle.clone(), digest.unwrap_or_default());
                    ("your credential", credential)
                }
            };
            lines.push(match credential {
                Some(WrittenCredential { kind, references, .. }) if references.is_empty() => {
                    format!("uses {whose} '{handle}' ({kind})")
                }
                Some(WrittenCredential { kind, references, .. }) => {
                    format!("uses {whose} '{handle}' ({kind}, {})", references.join(", "))
                }
                None => format!("uses {whose} '{handle}', which no file defines"),
            });
        }
        (lines, own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::discover::{ConfigFileCandidate, FileRole};
    use crate::config::node::SourceText;
    use crate::config::parse::parse;
    use crate::model::Layer;

    #[test]
    fn an_entry_says_whose_credentials_it_would_use() {
        let file = |layer, text: &str| SourceFile {
            candidate: ConfigFileCandidate {
                path: "tools.yaml".into(),
                role: FileRole::Tools,
                layer,
                inline_text: None,
            },
            root: parse(&SourceText::new("f", text), text).unwrap(),
            is_embedded: false,
            is_discovered: false,
        };
        let credentials = WrittenCredentials::of(&[
            file(Layer::User, "credentials: { both: { type: env }, own: { type: env } }"),
            file(Layer::Project, "credentials: { both: { type: oauth, token: '${T}' } }"),
        ]);
        let used_by = |text: &str| {
            let entry = parse(&SourceText::new("f", text), text).unwrap();
            let (lines, own) = credentials.used_by(&entry);
            let own: Vec<(String, bool)> =
                own.into_iter().map(|(handle, digest)| (handle, digest.is_empty())).collect();
            (lines, own)
        };
        let (lines, own) = used_by("credentials: [both, own, none]");
        let expected = [
            "uses the credential 'both' (oauth, ${T})",
            "uses your credential 'own' (env)",
            "uses your credential 'none', which no file defines",
        ];
        assert_eq!(lines, expected);
        assert_eq!(own, [("none".to_owned(), true), ("own".to_owned(), false)]);
        for without in ["name: x", "credentials: ~"] {
            assert_eq!(used_by(without), (Vec::new(), Vec::new()), "{without}");
        }
    }
}
