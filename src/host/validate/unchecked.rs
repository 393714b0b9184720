//! Reasons why a value was not checked against its schema.

use super::{BUDGET, MAX_BYTES, MAX_DEPTH, MAX_NODES};

/// Why a schema checks nothing. The messages complete a sentence such as "the arguments were not
/// checked".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UncheckedReason {
    /// It is neither an object nor a truth value.
    #[error("its schema is not an object")]
    NotASchema,
    /// It is nested deeper than [`MAX_DEPTH`].
    #[error("its schema is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// It is larger than [`MAX_BYTES`].
    #[error("its schema is larger than {} KiB", MAX_BYTES / 1024)]
    TooLarge,
    /// It has more objects and arrays than [`MAX_NODES`].
    #[error("its schema has more than {MAX_NODES} parts")]
    TooManyNodes,
    /// The validator does not accept it: a remote reference, an unknown dialect, a broken keyword.
    #[error("its schema cannot be used: {cause}")]
    Unusable {
        /// What the validator says, without values of the schema, made safe to be shown.
        cause: String,
    },
    /// It was not compiled within [`BUDGET`].
    #[error("compiling its schema takes longer than {BUDGET:?}")]
    CompileTimeout,
    /// A value was not checked within [`BUDGET`], this one or one before.
    #[error("checking takes longer than {BUDGET:?}")]
    CheckTimeout,
}
