//! Every loaded value with its source: the data of `toolhost config show`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::discover::{self, LoadRequest};
use super::entries::{self, Top};
use super::environment::Environment;
use super::expanded::ExpandedValues;
use super::node::{ConfigNode, NodeValue};
use super::secrets;
use super::sources::{ConfigSources, open};
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
/// read are skipped: `load` reports what is wrong with them. The names of discovered files may hold
/// what is `expanded`.
pub fn show(
    request: &LoadRequest,
    environment: &dyn Environment,
    expanded: &ExpandedValues,
) -> Vec<ConfigValue> {
    let found = discover::find(request, environment);
    let sources = ConfigSources::read(found, environment, expanded);
    let (mut values, mut taken) = (Vec::new(), BTreeSet::new());
    for mut file in sources.files {
        let (role, layer) = (file.candidate.role, file.candidate.layer);
        // Servers that another editor's file has too are not loaded, but shadowed.
        if let (true, Ok(whole)) = (file.candidate.is_editors(), open(&file.candidate)) {
            file = whole;
        }
        FileValues { role, layer, values: &mut values, taken: &mut taken }.list(&file.root);
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
        for part in entries::top(root, self.role) {
            match part {
                Top::Entry(entry) => {
                    let name = entry.name().map(|(name, _)| name);
                    let name = name.unwrap_or_else(|_| format!("[{}]", entry.index));
                    let is_shadowed = !self.taken.insert((self.role, name.clone()));
                    let list = if entry.list.is_empty() { "" } else { &format!("{}.", entry.list) };
                    self.value(&format!("{list}{name}"), &name, entry.node, is_shadowed);
                }
                Top::Other(Some("credentials"), _, handles) if !handles.entries().is_empty() => {
                    for (handle, credential) in handles.entries() {
                        self.credential(&handle.text, credential);
                    }
                }
                Top::Other(_, key, value) => self.value(&key.text, &key.text, value, false),
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
                location.text = Arc::from("");
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
        let shown = show(&request, &FixedEnvironment::default(), &ExpandedValues::default());
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

    /// The paths of the values of these files in one directory, with a mark for those that are shadowed.
    fn paths(files: &[(&str, &str)], request: &LoadRequest) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let environment =
            FixedEnvironment { cwd: dir.path().into(), ..FixedEnvironment::default() };
        let shown = show(request, &environment, &ExpandedValues::default());
        let mark = |value: &ConfigValue| if value.is_shadowed { " shadowed" } else { "" };
        shown.iter().map(|value| format!("{}{}", value.path, mark(value))).collect()
    }

    #[test]
    fn the_files_of_discovered_directories_are_shown() {
        let files = [
            ("tools.yaml", "discover: more\ntools: [{ name: a, timeout: 1 }]"),
            ("more/b.yaml", "tools: [{ name: b, timeout: 1 }, { name: a, timeout: 2 }]"),
        ];
        let shown = paths(&files, &LoadRequest::default());
        assert_eq!(
            shown,
            [
                "discover",
                "tools.a.name",
                "tools.a.timeout",
                "tools.b.name",
                "tools.b.timeout",
                "tools.a.name shadowed",
                "tools.a.timeout shadowed"
            ]
        );
    }

    #[test]
    fn a_server_that_two_editors_have_is_shown_as_shadowed() {
        let servers = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
        let files = [(".mcp.json", servers), (".cursor/mcp.json", servers)];
        let shown = paths(&files, &LoadRequest::default());
        assert_eq!(shown, ["mcpServers.a.command", "mcpServers.a.command shadowed"]);
    }

    #[test]
    fn a_key_that_is_no_entry_shadows_none() {
        let (one, two) = ("x-a: 1\nmcp_servers: { b: { command: x } }", "x-a: 2\nmcp_servers: {}");
        let request = LoadRequest {
            servers: vec!["one.yaml".into(), "two.yaml".into()],
            ..LoadRequest::default()
        };
        let shown = paths(&[("one.yaml", one), ("two.yaml", two)], &request);
        assert_eq!(shown, ["x-a", "mcp_servers.b.command", "x-a"]);
    }
}
