//! Forms: a JSON Schema as fields that a person can fill in.
//!
//! Owns: what of a schema is a field and of which kind; the tree of fields with what was put into
//! each (nothing, `null` or a value); the value that the whole makes; whether it fits. What cannot
//! be a field of a kind is a field that takes JSON. Everything is bounded, and what is nested is
//! read only when a person opens it, so that a schema that refers to itself ends. Never does: ask or
//! draw.

mod assign;
mod check;
mod field;
mod node;
mod required;
mod rows;
mod schema;
mod value;

#[cfg(test)]
mod tests;

pub use check::{FormatMismatch, check_format, validate};
pub use field::{FieldChoice, FieldKind, FormField, defaults, fields};
pub use node::{FieldInput, FormNode};
pub use required::RequiredFields;
pub use rows::{FieldRow, RowPart};
pub use schema::ResolvedSchema;

/// How many fields of one object are shown.
pub const MAX_FIELDS: usize = 200;
/// How many choices a field may have; with more it is a text.
pub const MAX_CHOICES: usize = 500;
/// How many forms a field may take; with more it takes JSON.
pub const MAX_VARIANTS: usize = 50;
/// How deep fields stand in each other; what is deeper takes JSON.
pub const MAX_DEPTH: usize = 12;
/// How many items of a list are fields; a longer list is one field that takes JSON.
pub const MAX_ITEMS: usize = 200;
/// How many fields are made for a value that is held; the rest of it takes JSON.
pub const MAX_VALUE_FIELDS: usize = 2_000;
