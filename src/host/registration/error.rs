//! Why something was not registered, or not removed.

use crate::model::{Error, ErrorKind, InvalidNameError};
use crate::util::spelling::did_you_mean;

/// Why a host did not register or remove something. Nothing changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegistrationError {
    /// The name is taken.
    #[error("the name '{name}' is taken by {owner}")]
    NameTaken {
        /// The name of a tool, component or provider, or a type key.
        name: String,
        /// Who has it, as text: `the MCP server 'github'`, `the tool at tools.yaml:3:5`.
        owner: String,
    },
    /// The name has characters that a name must not have.
    #[error(transparent)]
    InvalidName(#[from] InvalidNameError),
    /// No factory is registered for the type of a component.
    #[error("unknown component type '{key}'")]
    UnknownType {
        /// The type key that was asked for.
        key: String,
        /// The type keys that are registered, sorted.
        known: Vec<String>,
    },
    /// Nothing of this sort is registered under the name.
    #[error("no {sort} is registered under the name '{name}'")]
    NotRegistered {
        /// The name that was asked for.
        name: String,
        /// `component type`, `provider`, `component` or `MCP server`.
        sort: &'static str,
        /// What is registered under the name, as text, if it is of another sort.
        other: Option<String>,
    },
    /// The tool of a component is not named `{component}-{tool}`.
    #[error("the component '{component}' has a tool '{tool}', which is not named after it")]
    ForeignTool {
        /// The name of the component.
        component: String,
        /// The full name of the tool.
        tool: String,
    },
    /// The host was built without a way to reach MCP servers.
    #[error("this host was built without MCP servers")]
    NoClients,
    /// The host is closed, or is being closed.
    #[error("the host is closed")]
    HostClosed,
    /// The factory refused the configuration.
    #[error(transparent)]
    Invalid(Error),
}

impl RegistrationError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownType { known, .. } if known.is_empty() => {
                Some("no component type is registered: register_kind adds one".to_owned())
            }
            Self::UnknownType { key, known } => {
                let types = format!("known types: {}", known.join(", "));
                let near = did_you_mean(key, known.iter().map(String::as_str));
                Some(near.into_iter().chain([types]).collect::<Vec<_>>().join(" "))
            }
            Self::NotRegistered { other: Some(other), .. } => Some(format!("it is {other}")),
            Self::NameTaken { .. } => Some("remove that first, or use another name".to_owned()),
            Self::NoClients => Some("`assembly::host_builder` builds one with them".to_owned()),
            _ => None,
        }
    }
}

impl From<RegistrationError> for Error {
    fn from(error: RegistrationError) -> Self {
        let kind = match error {
            RegistrationError::Invalid(error) => return error,
            RegistrationError::ForeignTool { .. } => ErrorKind::Internal,
            _ => ErrorKind::Usage,
        };
        let hint = error.hint();
        let error = Self::new(kind, error.to_string());
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}
