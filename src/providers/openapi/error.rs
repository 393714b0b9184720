//! Reasons why an operation cannot become a tool.

use super::MAX_DEFS;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OperationError {
    #[error("'{0}' is outside the document")]
    ReferenceOutside(String),
    #[error("there is nothing at '{0}'")]
    ReferenceMissing(String),
    #[error("references form a cycle")]
    ReferenceCycle,
    #[error("more than {MAX_DEFS} schemas are referenced")]
    TooManySchemas,
    #[error("its path has a placeholder in a query")]
    PlaceholderInQuery,
    #[error("it needs the cookie '{0}', and cookies are not sent")]
    RequiredCookie(String),
    /// None of the media types of its body can be made from arguments.
    #[error("its body is {}; JSON, forms, text and bytes are sent", .0.join(" or "))]
    BodyType(Vec<String>),
    #[error("a parameter and its body are both called 'body'")]
    BodyNameTaken,
}
