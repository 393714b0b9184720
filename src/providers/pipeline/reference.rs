//! Placeholders of pipelines as written: a name, and the path into its value.

use crate::model::Diagnostic;
use crate::providers::template::Placeholder;

/// A placeholder: a name, and the way into its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueReference {
    /// An argument, a step, or one of the words `args`, `context`, `item`, `index`.
    pub(super) root: String,
    /// Keys of objects and numbers of items, from 0.
    pub(super) path: Vec<String>,
    /// How it is written.
    pub(super) text: String,
}

impl Placeholder for ValueReference {
    fn parse(inside: &str) -> Result<Option<Self>, Diagnostic> {
        Ok(Self::read(inside))
    }
}

impl ValueReference {
    /// `root`, then `.key`, `[number]` or `["key"]`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let word = |text: &str| {
            let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            let end = text.find(|c| !fits(c)).unwrap_or(text.len());
            (end > 0).then(|| text.split_at(end)).map(|(a, b)| (a.to_owned(), b.to_owned()))
        };
        let (root, mut rest) = word(text)?;
        let mut path = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let (key, after) = word(after)?;
                path.push(key);
                rest = after;
            } else {
                let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
                let quoted = inside.strip_prefix('"').and_then(|inside| inside.strip_suffix('"'));
                match quoted {
                    Some(key) => path.push(key.to_owned()),
                    None => path.push(inside.parse::<usize>().ok()?.to_string()),
                }
                rest = after.to_owned();
            }
        }
        Some(Self { root, path, text: text.to_owned() })
    }
}
