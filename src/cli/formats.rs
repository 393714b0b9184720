//! Which formats each command can print.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ValueEnum as _};

use super::output::Format;

/// Rows of items that have names.
pub const LIST: &[Format] =
    &[Format::Text, Format::Table, Format::Json, Format::Yaml, Format::Names];
/// What is text by nature: scripts, pages, short notes.
pub const TEXT: &[Format] = &[Format::Text];
pub const REPORT: &[Format] = &[Format::Text, Format::Json, Format::Yaml];
/// Lines printed while the command runs.
pub const STREAM: &[Format] = &[Format::Text, Format::Json];
pub const RESULT: &[Format] =
    &[Format::Text, Format::Table, Format::Json, Format::Yaml, Format::Raw];
pub const SAVED: &[Format] =
    &[Format::Text, Format::Table, Format::Json, Format::Yaml, Format::Raw, Format::Names];
pub const CONTENT: &[Format] = &[Format::Text, Format::Json, Format::Yaml, Format::Raw];
pub const WORDS: &[Format] = &[Format::Text, Format::Json, Format::Yaml, Format::Names];
/// Rows of items without names.
pub const ROWS: &[Format] = &[Format::Text, Format::Table, Format::Json, Format::Yaml];
pub const MEASUREMENTS: &[Format] =
    &[Format::Text, Format::Json, Format::Yaml, Format::Csv, Format::Markdown];

/// The option `-o` of a command that prints these formats, in place of the one that every command
/// has.
pub fn option(supported: &'static [Format]) -> Arg {
    let names = supported.iter().filter_map(Format::to_possible_value);
    let parser = PossibleValuesParser::new(names)
        // The parser only accepts these values.
        .map(|word| <Format as clap::ValueEnum>::from_str(&word, false).unwrap_or_default());
    Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FORMAT")
        .value_parser(parser)
        .global(true)
        // At the position of the general option.
        .display_order(5)
        .help("Print in this format")
        .help_heading("Global options")
}
