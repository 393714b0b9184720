//! Errors in templates; the wording is the same for every kind of tool.

use crate::providers::hinted_error::HintedError;

/// Why a text cannot be read as a template. Holds no value of a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::providers) enum TemplateError {
    #[error("the '{brace}' at column {column} of '{text}' is not part of a placeholder")]
    UnmatchedBrace {
        brace: char,
        /// The place of the brace in the text, in characters from 1.
        column: usize,
        text: String,
    },
    #[error("the context has no '{{{placeholder}}}'")]
    UnknownContextField {
        placeholder: String,
        /// The parts there are, as placeholders name them.
        known: &'static [&'static str],
    },
}

impl HintedError for TemplateError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnmatchedBrace { .. } => {
                "write {name} for an argument, and {{ or }} for a literal brace".to_owned()
            }
            Self::UnknownContextField { known, .. } => format!("it has {}", known.join(", ")),
        })
    }
}
