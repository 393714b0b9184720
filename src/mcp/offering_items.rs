//! Parsing one listed prompt, resource or template, or an error.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::definition::{abbreviated, invisible_characters_warning};
use super::listing::{ListSpec, Listable};
use super::notifications::URI_LIMIT;
use crate::model::{Error, Prompt, PromptArgument, Resource, ResourceTemplate, ToolName};
use crate::util::text::{is_invisible, safe_line};

/// The longest name of a prompt or of one of its arguments, in characters.
const NAME_LIMIT: usize = 256;
const MAX_ARGUMENTS: usize = 200;

impl Listable for Prompt {
    const LIST: ListSpec = ListSpec {
        method: "prompts/list",
        field: "prompts",
        capability: "prompts",
        singular: "prompt",
        is_method_optional: false,
    };

    fn read(server: &str, raw: Box<RawValue>, item: Value, _: bool) -> Result<Self, Error> {
        let fields = ItemFields::of("a prompt", &item)?;
        let name = fields.name("name", NAME_LIMIT)?;
        let mut prompt = Self {
            name: ToolName::of(server, name),
            title: fields.text("title", name)?,
            description: fields.text("description", name)?,
            arguments: arguments(&fields, name)?,
            warnings: Vec::new(),
            raw: Arc::from(raw),
        };
        let descriptions = prompt.arguments.iter().map(|argument| &argument.description);
        prompt.warnings.extend(invisible_characters_warning(
            [&prompt.title, &prompt.description].into_iter().chain(descriptions),
        ));
        Ok(prompt)
    }

    fn key(&self) -> &str {
        self.name.tool()
    }
}

fn arguments(fields: &ItemFields<'_>, name: &str) -> Result<Vec<PromptArgument>, Error> {
    let items = match fields.map.get("arguments") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(fields.invalid(name, "its arguments", other)),
    };
    if items.len() > MAX_ARGUMENTS {
        let text = format!("prompt \"{name}\" has more than {MAX_ARGUMENTS} arguments");
        return Err(Error::protocol(text));
    }
    let mut arguments: Vec<PromptArgument> = Vec::with_capacity(items.len());
    for item in items {
        let inner = ItemFields::of("an argument", item)
            .map_err(|_| fields.invalid(name, "one of its arguments", item))?;
        let within = |error: Error| error.context(&format!("prompt \"{name}\""));
        let key = inner.name("name", NAME_LIMIT).map_err(within)?;
        if arguments.iter().any(|earlier| earlier.name == key) {
            let text = format!("prompt \"{name}\" has two arguments called \"{key}\"");
            return Err(Error::protocol(text));
        }
        arguments.push(PromptArgument {
            name: key.to_owned(),
            title: inner.text("title", key).map_err(within)?,
            description: inner.text("description", key).map_err(within)?,
            required: inner.map.get("required").and_then(Value::as_bool).unwrap_or(false),
        });
    }
    Ok(arguments)
}

impl Listable for Resource {
    const LIST: ListSpec = ListSpec {
        method: "resources/list",
        field: "resources",
        capability: "resources",
        singular: "resource",
        is_method_optional: false,
    };

    fn read(server: &str, raw: Box<RawValue>, item: Value, _: bool) -> Result<Self, Error> {
        let fields = ItemFields::of("a resource", &item)?;
        let uri = fields.name("uri", URI_LIMIT)?;
        let mut resource = Self {
            server: server.to_owned(),
            uri: uri.to_owned(),
            // Without its own name, the address is the name.
            name: fields.text("name", uri)?.unwrap_or_else(|| uri.to_owned()),
            title: fields.text("title", uri)?,
            description: fields.text("description", uri)?,
            mime_type: fields.text("mimeType", uri)?,
            size: fields.map.get("size").and_then(Value::as_u64),
            warnings: Vec::new(),
            raw: Arc::from(raw),
        };
        resource
            .warnings
            .extend(invisible_characters_warning([&resource.title, &resource.description]));
        Ok(resource)
    }

    fn key(&self) -> &str {
        &self.uri
    }
}

impl Listable for ResourceTemplate {
    const LIST: ListSpec = ListSpec {
        method: "resources/templates/list",
        field: "resourceTemplates",
        capability: "resources",
        singular: "template",
        // Servers with resources and without templates often do not know the method.
        is_method_optional: true,
    };

    fn read(server: &str, raw: Box<RawValue>, item: Value, _: bool) -> Result<Self, Error> {
        let fields = ItemFields::of("a template", &item)?;
        let template = fields.name("uriTemplate", URI_LIMIT)?;
        let mut read = Self {
            server: server.to_owned(),
            template: template.to_owned(),
            name: fields.text("name", template)?.unwrap_or_else(|| template.to_owned()),
            title: fields.text("title", template)?,
            description: fields.text("description", template)?,
            mime_type: fields.text("mimeType", template)?,
            warnings: Vec::new(),
            raw: Arc::from(raw),
        };
        read.warnings.extend(invisible_characters_warning([&read.title, &read.description]));
        Ok(read)
    }

    fn key(&self) -> &str {
        &self.template
    }
}

/// The members of an item of a list.
pub(super) struct ItemFields<'a> {
    /// What it is, with its article: `a tool`.
    what: &'static str,
    map: &'a Map<String, Value>,
}

impl<'a> ItemFields<'a> {
    pub(super) fn of(what: &'static str, item: &'a Value) -> Result<Self, Error> {
        match item {
            Value::Object(map) => Ok(Self { what, map }),
            other => {
                Err(Error::protocol(format!("{what} is {}, not an object", abbreviated(other))))
            }
        }
    }

    /// What the item is known by: refused when it could be taken for something else or cannot be
    /// shown as it is.
    pub(super) fn name(&self, key: &str, limit: usize) -> Result<&'a str, Error> {
        let what = self.what;
        let refused = |text: String| Err(Error::protocol(text));
        let name = match self.map.get(key) {
            Some(Value::String(name)) => name,
            Some(other) => {
                return refused(format!("the {key} of {what} is {}, not text", abbreviated(other)));
            }
            None => return refused(format!("{what} has no {key}")),
        };
        if name.trim().is_empty() {
            return refused(format!("{what} has an empty {key}"));
        }
        let length = name.chars().count();
        if length > limit {
            return refused(format!(
                "the {key} of {what} is {length} characters long; {limit} are allowed"
            ));
        }
        if name.chars().any(|c| c.is_control() || is_invisible(c)) {
            return Err(self.unshowable(key, name));
        }
        Ok(name)
    }

    pub(super) fn unshowable(&self, key: &str, name: &str) -> Error {
        let (what, shown) = (self.what, safe_line(name));
        Error::protocol(format!(
            "the {key} \"{shown}\" of {what} has characters that cannot be shown"
        ))
    }

    pub(super) fn text(&self, key: &str, of: &str) -> Result<Option<String>, Error> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.invalid(of, &format!("its {key}"), other)),
        }
    }

    pub(super) fn invalid(&self, of: &str, member: &str, value: &Value) -> Error {
        let item = self.what.split(' ').next_back().unwrap_or_default();
        Error::protocol(format!("{item} \"{of}\": {member} is {}", abbreviated(value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<T: Listable>(item: &Value) -> Result<T, Error> {
        T::read("srv", serde_json::value::to_raw_value(item).unwrap(), item.clone(), false)
    }

    #[test]
    fn a_prompt_keeps_what_it_came_with() {
        let item = json!({ "name": "greet", "title": "Greet", "icons": [], "arguments": [
            { "name": "who", "required": true }, { "name": "how", "description": "a\u{202e}b" } ] });
        let prompt: Prompt = read(&item).unwrap();
        assert_eq!(prompt.name.full(), "srv-greet");
        assert!(prompt.arguments[0].required && !prompt.arguments[1].required);
        assert_eq!(prompt.warnings.len(), 1);
        assert_eq!(serde_json::from_str::<Value>(prompt.raw.get()).unwrap(), item);
    }

    #[test]
    fn a_resource_and_a_template_are_known_by_their_addresses() {
        let resource: Resource = read(&json!({ "uri": "a:1", "size": 12 })).unwrap();
        assert_eq!((resource.name.as_str(), resource.size), ("a:1", Some(12)));
        let template: ResourceTemplate =
            read(&json!({ "uriTemplate": "a:{x}", "name": "x", "mimeType": "text/plain" }))
                .unwrap();
        assert_eq!((template.key(), template.mime_type.as_deref()), ("a:{x}", Some("text/plain")));
    }

    #[test]
    fn malformed_items_say_what_is_wrong() {
        for (item, expected) in [
            (json!(7), "not an object"),
            (json!({}), "no name"),
            (json!({ "name": 3 }), "name of a prompt is 3"),
            (json!({ "name": " " }), "empty"),
            (json!({ "name": "a\u{1b}[2J" }), "cannot be shown"),
            (json!({ "name": "x".repeat(1000) }), "1000 characters"),
            (json!({ "name": "p", "title": [] }), "its title is []"),
            (json!({ "name": "p", "arguments": {} }), "its arguments is {}"),
            (json!({ "name": "p", "arguments": [1] }), "one of its arguments is 1"),
            (json!({ "name": "p", "arguments": [{}] }), "no name"),
            (json!({ "name": "p", "arguments": [{ "name": "a" }, { "name": "a" }] }), "two"),
        ] {
            let reason = read::<Prompt>(&item).unwrap_err().to_string();
            assert!(reason.contains(expected), "{reason}");
        }
        for (item, expected) in [
            (json!({ "name": "n" }), "no uri"),
            (json!({ "uri": "a\nb" }), "cannot be shown"),
            (json!({ "uri": "a:", "mimeType": 1 }), "its mimeType is 1"),
        ] {
            let reason = read::<Resource>(&item).unwrap_err().to_string();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
