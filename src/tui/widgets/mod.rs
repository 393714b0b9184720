//! What the views are made of.

pub mod chart;
pub mod filter;
pub mod input;
pub mod json_tree;
pub mod list;
pub mod page;
pub mod pane;
pub mod picture;
pub mod reading;
pub mod scroll_text;
pub mod table;
