//! Parsing one listed prompt, resource or template, or an error.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::definition::{abbreviated, invisible_characters_warning};
use super::item_error::ItemError;
use super::listing::{ListSpec, Listable};
use super::notifications::URI_LIMIT;
use crate::model::{Prompt, PromptArgument, Resource, ResourceTemplate, ToolName};
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

    fn read(
        server: &str,
        raw: Box<RawValue>,
        item: Value,
        _modern: bool,
    ) -> Result<Self, ItemError> {
        let fields = ItemFields::of("prompt", &item)?;
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

fn arguments(fields: &ItemFields<'_>, name: &str) -> Result<Vec<PromptArgument>, ItemError> {
    let items = match fields.map.get("arguments") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(fields.invalid_field(name, "its arguments", other)),
    };
    if items.len() > MAX_ARGUMENTS {
        return Err(ItemError::TooManyArguments { prompt: name.to_owned(), limit: MAX_ARGUMENTS });
    }
    let mut arguments: Vec<PromptArgument> = Vec::with_capacity(items.len());
    for item in items {
        let inner = ItemFields::of("argument", item)
            .map_err(|_| fields.invalid_field(name, "one of its arguments", item))?;
        let within = |flaw: ItemError| ItemError::InvalidArgument {
            prompt: name.to_owned(),
            flaw: Box::new(flaw),
        };
        let key = inner.name("name", NAME_LIMIT).map_err(within)?;
        if arguments.iter().any(|earlier| earlier.name == key) {
            return Err(ItemError::ArgumentTwice {
                prompt: name.to_owned(),
                argument: key.to_owned(),
            });
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

    fn read(
        server: &str,
        raw: Box<RawValue>,
        item: Value,
        _modern: bool,
    ) -> Result<Self, ItemError> {
        let fields = ItemFields::of("resource", &item)?;
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

    fn read(
        server: &str,
        raw: Box<RawValue>,
        item: Value,
        _modern: bool,
    ) -> Result<Self, ItemError> {
        let fields = ItemFields::of("template", &item)?;
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

pub(super) struct ItemFields<'a> {
    what: &'static str,
    map: &'a Map<String, Value>,
}

impl<'a> ItemFields<'a> {
    pub(super) fn of(what: &'static str, item: &'a Value) -> Result<Self, ItemError> {
        match item {
            Value::Object(map) => Ok(Self { what, map }),
            other => Err(ItemError::NotAnObject { item: what, value: abbreviated(other) }),
        }
    }

    /// What the item is known by: refused when it could be taken for something else or cannot be
    /// shown as it is.
    pub(super) fn name(&self, key: &str, limit: usize) -> Result<&'a str, ItemError> {
        let item = self.what;
        let name = match self.map.get(key) {
            Some(Value::String(name)) => name,
            Some(other) => {
                let value = abbreviated(other);
                return Err(ItemError::KeyNotText { item, key: key.to_owned(), value });
            }
            None => return Err(ItemError::NoKey { item, key: key.to_owned() }),
        };
        if name.trim().is_empty() {
            return Err(ItemError::EmptyKey { item, key: key.to_owned() });
        }
        if name.len() > limit && name.chars().count() > limit {
            let count = name.chars().count();
            return Err(ItemError::KeyTooLong { item, key: key.to_owned(), count, limit });
        }
        if name.chars().any(|c| c.is_control() || is_invisible(c)) {
            let shown = safe_line(name).to_string();
            return Err(ItemError::UnshowableKey { item, key: key.to_owned(), shown });
        }
        Ok(name)
    }

    fn text(&self, key: &str, of: &str) -> Result<Option<String>, ItemError> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.invalid_field(of, &format!("its {key}"), other)),
        }
    }

    fn invalid_field(&self, of: &str, member: &str, value: &Value) -> ItemError {
        ItemError::InvalidMember {
            item: self.what,
            name: of.to_owned(),
            member: member.to_owned(),
            value: abbreviated(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<T: Listable>(item: &Value) -> Result<T, ItemError> {
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
