//! Every loaded value with its source: the data of `toolhost config show`.

use std::collections::BTreeSet;

use super::discover::{self, LoadRequest};
use super::entries::file_key;
use super::environment::Environment;
use super::node::{ConfigNode, NodeValue};
use super::secrets;
use super::sources::open;
use super::spec::{FileRole, Layer};
use crate::model::SourceLocation;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigValue {
    /// Its path, such as `tools.calculator.timeout` or `mcp_servers.demo.args[0]`.
    pub path: String,
    /// The value as one line of JSON; literal secrets are shown as `***`.
    pub value: String,
    /// Its location, without the text of the line.
    pub location: SourceLocation,
    pub layer: Layer,
    /// Whether a file with higher precedence has an entry of this name, so that this one is not
    /// used.
    pub is_shadowed: bool,
}

/// Every value of every file that `load` would read, in order of precedence. Files that cannot be
/// read are skipped: `load` reports what is wrong with them.
pub fn show(request: &LoadRequest, environment: &dyn Environment) -> Vec<ConfigValue> {
    let candidates = discover::find(request, environment).files;
    let (mut values, mut taken) = (Vec::new(), BTreeSet::new());
    for candidate in &candidates {
        let Ok(file) = open(candidate) else { continue };
        let (role, layer) = (candidate.role, candidate.layer);
        FileValues { role, layer, values: &mut values, taken: &mut taken }.list(&file.parsed.root);
    }
    values
}

/// The values of one file, beside those of the files before it.
struct FileValues<'a> {
    role: FileRole,
    layer: Layer,
    values: &'a mut Vec<ConfigValue>,
    taken: &'a mut BTreeSet<(FileRole, String)>,
}

impl FileValues<'_> {
    fn list(&mut self, root: &ConfigNode) {
        for (key, value) in root.entries() {
            match (&value.value, file_key(self.role, &key.text)) {
                (NodeValue::List(items), Some("tools" | "toolkits" | "components" | "clients")) => {
                    for (index, item) in items.iter().enumerate() {
                        let name =
                            item.get_any(&["name", "tool_name", "original_tool_name", "client_id"]);
                        let name = name.and_then(|(_, node)| node.as_scalar_text().ok());
                        let name = name.unwrap_or_else(|| format!("[{index}]"));
                        self.entry(&format!("{}.", key.text), &name, item);
                    }
                }
                (NodeValue::Map(entries), Some("mcp_servers")) => {
                    for (name, item) in entries.iter() {
                        self.entry(&format!("{}.", key.text), &name.text, item);
                    }
                }
                (_, None) if self.role == FileRole::Servers => self.entry("", &key.text, value),
                (NodeValue::Map(handles), Some("credentials")) => {
                    for (handle, credential) in handles.iter() {
                        self.credential(&handle.text, credential);
                    }
                }
                _ => self.value(&key.text, &key.text, value, false),
            }
        }
    }

    fn credential(&mut self, handle: &str, node: &ConfigNode) {
        if node.entries().is_empty() {
            self.value(&format!("credentials.{handle}"), "secret", node, false);
        }
        for (key, value) in node.entries() {
            let path = format!("credentials.{handle}.{}", key.text);
            let name = if &*key.text == "value" { "secret" } else { &key.text };
            self.value(&path, name, value, false);
        }
    }

    fn entry(&mut self, list: &str, name: &str, item: &ConfigNode) {
        let is_shadowed = !self.taken.insert((self.role, name.to_owned()));
        self.value(&format!("{list}{name}"), name, item, is_shadowed);
    }

    fn value(&mut self, path: &str, key: &str, node: &ConfigNode, is_shadowed: bool) {
        match &node.value {
            NodeValue::Map(entries) if !entries.is_empty() => {
                for (key, value) in entries.iter() {
                    self.value(&format!("{path}.{}", key.text), &key.text, value, is_shadowed);
                }
            }
            NodeValue::List(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{path}[{index}]"), key, item, is_shadowed);
                }
            }
            scalar => {
                let value = match scalar {
                    NodeValue::Text(text) => {
                        serde_json::Value::String(secrets::display_value(key, text)).to_string()
                    }
                    _ => node.to_json().to_string(),
                };
                let mut location = node.location();
                // The line may contain a secret next to this value.
                location.text = std::sync::Arc::from("");
                self.values.push(ConfigValue {
                    path: path.to_owned(),
                    value,
                    location,
                    layer: self.layer,
                    is_shadowed,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::environment::FixedEnvironment;

    #[test]
    fn every_value_has_its_source_and_no_secret_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one.yaml"), dir.path().join("two.yaml"));
        std::fs::write(
            &one,
            "mcp_servers:\n  a: { command: x, env: { API_TOKEN: hunter2hunter2, B_TOKEN: \"${B}\" } }\n",
        )
        .unwrap();
        std::fs::write(&two, "a: { command: y, timeout: 3 }\n").unwrap();
        let request = LoadRequest { servers: vec![one, two], ..LoadRequest::default() };
        let shown = show(&request, &FixedEnvironment::default());
        let lines: Vec<String> = shown
            .iter()
            .map(|v| {
                format!(
                    "{} = {} :{}:{} {}",
                    v.path, v.value, v.location.line, v.location.column, v.is_shadowed
                )
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
mcp_servers.a.command = "x" :2:17 false
mcp_servers.a.env.API_TOKEN = "***" :2:38 false
mcp_servers.a.env.B_TOKEN = "${B}" :2:63 false
a.command = "y" :1:15 true
a.timeout = 3 :1:27 true
"#);
        assert!(!format!("{shown:?}").contains("hunter2"));
    }
}
