//! Forms: a JSON Schema as fields that a person can fill in.
//!
//! Owns: which parts of a schema are fields, and of which kind; the tree of fields with the input
//! of each (nothing, `null` or a value); the value of the whole form; whether it is valid. Parts
//! that fit no kind of field take JSON. Everything is bounded, and nested fields are read only when
//! a person opens them, so that a recursive schema terminates. Never does: ask or draw.

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

pub use check::validate;
pub use field::{FieldChoice, FieldKind, FormField, defaults, fields};
pub use node::{FieldInput, FormNode};
pub use rows::{FieldRow, RowPart};
pub use schema::ResolvedSchema;

pub const MAX_FIELDS: usize = 200;
/// How many choices a field may have; with more it is a text.
pub const MAX_CHOICES: usize = 500;
/// How many forms a field may take; with more it takes JSON.
pub const MAX_VARIANTS: usize = 50;
/// Maximum nesting depth of fields; deeper ones take JSON.
pub const MAX_DEPTH: usize = 12;
/// How many items of a list are fields; a longer list is one field that takes JSON.
pub const MAX_ITEMS: usize = 200;
/// How many fields are made for a value that is held; the rest of it takes JSON.
pub const MAX_VALUE_FIELDS: usize = 2_000;
