//! Errors in `endpoint_url` and `base_url`.

use crate::providers::hinted_error::HintedError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UrlTemplateError {
    #[error("this is not a URL: {0}")]
    Invalid(#[from] url::ParseError),
    #[error("the scheme '{0}' is not supported")]
    Scheme(String),
    #[error("this names a host without a scheme")]
    NoScheme,
    #[error("a URL must not carry a user name or a password")]
    Credentials,
    #[error("text after '#' is never sent")]
    Fragment,
    #[error("a placeholder after '#' is never sent")]
    PlaceholderInFragment,
    /// The value of an argument would decide where the request goes.
    #[error("an argument cannot choose scheme, host or port")]
    PlaceholderInOrigin,
    #[error("an argument cannot be the name of a query parameter")]
    PlaceholderInQueryName,
    #[error("a '..' in the path removes a placeholder")]
    LostPlaceholder,
    #[error("a relative endpoint_url needs a base_url")]
    NoBase,
    #[error("the base_url '{0}' is not a URL")]
    InvalidBase(String),
    #[error("a base_url cannot contain placeholders")]
    PlaceholderInBase,
    #[error("a base_url cannot have a query or fragment")]
    QueryInBase,
}

impl HintedError for UrlTemplateError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Invalid(_) | Self::InvalidBase(_) => "start it with http:// or https://",
            Self::Scheme(_) => "use http or https",
            Self::NoScheme => "start it with https://",
            Self::Credentials => "use headers or auth: URLs are shown and logged",
            Self::Fragment | Self::PlaceholderInFragment => "write %23 for a '#' itself",
            Self::PlaceholderInOrigin => "placeholders are allowed in the path and in the query",
            Self::PlaceholderInQueryName => "write name={argument}",
            Self::LostPlaceholder => "write the path without it",
            Self::NoBase => "set base_url in the entry or in defaults, or write the whole URL",
            Self::PlaceholderInBase => "put them into endpoint_url",
            Self::QueryInBase => "put the query into 'query'",
        };
        Some(hint.to_owned())
    }
}
