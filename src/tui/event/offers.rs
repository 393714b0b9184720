//! What the resources and prompts want done, and what comes of it.

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {}

/// What came of it.
#[derive(Debug)]
pub enum News {}
