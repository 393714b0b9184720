//! Options whose words are rows of a table: the word, its help, and the value it stands for.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::model::Error;

/// A word of an option; without help text when that is empty.
pub type Choice<T> = (&'static str, &'static str, T);

/// Parses one of the words.
pub fn choice<T>(table: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let word = |(word, help, _): &Choice<T>| match *help {
        "" => PossibleValue::new(*word),
        help => PossibleValue::new(*word).help(help),
    };
    PossibleValuesParser::new(table.iter().map(word)).try_map(|given| {
        let row = table.iter().find(|(word, ..)| *word == given);
        row.map(|(.., value)| value.clone()).ok_or_else(|| Error::usage("unknown word"))
    })
}
