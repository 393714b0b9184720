//! This kind at work in real directories.
