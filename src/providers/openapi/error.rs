//! Reasons why an operation cannot become a tool.

use super::{MAX_DEFS, MAX_DEPTH};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OperationError {
    #[error("'{0}' is outside the document")]
    ReferenceOutside(String),
    #[error("there is nothing at '{0}'")]
    ReferenceMissing(String),
    #[error("references form a cycle")]
    ReferenceCycle,
    #[error("a schema is deeper than {MAX_DEPTH}")]
    SchemaTooDeep,
    #[error("more than {MAX_DEFS} schemas are referenced")]
    TooManySchemas,
    #[error("its path has a query or a fragment")]
    PathWithQuery,
    #[error("it needs the cookie '{0}', and cookies are not sent")]
    RequiredCookie(String),
    /// None of the media types of its body can be made from arguments.
    #[error("its body is {}; JSON, forms and text are sent", .0.join(" or "))]
    BodyType(Vec<String>),
    #[error("a parameter and its body are both called 'body'")]
    BodyNameTaken,
}
