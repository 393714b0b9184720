//! Values with templates in them.

use serde_json::{Map, Value};

use super::{Placeholder, TextTemplate};
use crate::config::node::{ConfigNode, NodeValue};

/// A value whose texts are templates; its keys are not.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::providers) enum TemplateTree<P> {
    /// A number, boolean or null, which stays what it is.
    Fixed(Value),
    Text(TextTemplate<P>),
    /// Without the items that are absent.
    List(Vec<Self>),
    /// Without the members that are absent.
    Map(Vec<(String, Self)>),
}

/// What a text becomes; `None` for something absent.
type TextFiller<'a, P, E> = dyn Fn(&TextTemplate<P>) -> Result<Option<Value>, E> + 'a;

impl<P: Placeholder> TemplateTree<P> {
    /// A value of a file; `text` reads each text of it and reports what is wrong.
    pub(in crate::providers) fn of(
        node: &ConfigNode,
        text: &mut dyn FnMut(&str, &ConfigNode) -> Option<TextTemplate<P>>,
    ) -> Self {
        match &node.value {
            NodeValue::Text(written) => {
                text(written, node).map_or(Self::Fixed(Value::Null), Self::Text)
            }
            NodeValue::List(items) => {
                Self::List(items.iter().map(|item| Self::of(item, text)).collect())
            }
            NodeValue::Map(entries) => {
                let entries = entries.iter();
                Self::Map(
                    entries.map(|(key, v)| (key.text.to_string(), Self::of(v, text))).collect(),
                )
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
                Self::Fixed(node.to_json())
            }
        }
    }

    pub(in crate::providers) fn texts(&self) -> Vec<&TextTemplate<P>> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Text(template) => vec![template],
            Self::List(items) => items.iter().flat_map(Self::texts).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, value)| value.texts()).collect(),
        }
    }

    /// The placeholder that makes up the whole value, if there is nothing else in it.
    pub(in crate::providers) fn sole_placeholder(&self) -> Option<&P> {
        match self {
            Self::Text(template) => template.sole_placeholder(),
            _ => None,
        }
    }

    /// The value with every text filled by `text`.
    pub(in crate::providers) fn filled<E>(
        &self,
        text: &TextFiller<'_, P, E>,
    ) -> Result<Option<Value>, E> {
        Ok(match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Text(template) => text(template)?,
            Self::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.extend(item.filled(text)?);
                }
                Some(Value::Array(list))
            }
            Self::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    if let Some(value) = value.filled(text)? {
                        map.insert(key.clone(), value);
                    }
                }
                Some(Value::Object(map))
            }
        })
    }
}
