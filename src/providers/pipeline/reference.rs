//! Placeholders of pipelines as written: a name, and the path into its value.

use std::fmt;

use crate::model::Diagnostic;
use crate::providers::template::Placeholder;

/// A placeholder: a name, and the way into its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueReference {
    /// An argument, a step, or one of the words `args`, `context`, `item`, `index`.
    pub(super) root: String,
    pub(super) path: Vec<PathSegment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathSegment {
    Key(String),
    /// The number of an item, from 0.
    Index(usize),
}

impl fmt::Display for ValueReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        for segment in &self.path {
            match segment {
                PathSegment::Key(key) => write!(f, ".{key}")?,
                PathSegment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
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
                path.push(PathSegment::Key(key));
                rest = after;
            } else {
                let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
                let quoted = inside.strip_prefix('"').and_then(|inside| inside.strip_suffix('"'));
                path.push(match quoted {
                    Some(key) => PathSegment::Key(key.to_owned()),
                    None => PathSegment::Index(inside.parse().ok()?),
                });
                rest = after.to_owned();
            }
        }
        Some(Self { root, path })
    }
}
