//! One document for each thing that people look at: sanitised lines, tables and charts.
//!
//! Owns: the text model, and what is shown of each value of the model; the command line and the
//! console show it. Pure: no input, no output, no clock.

pub mod approval;
pub mod audit;
pub mod background;
pub mod bench;
pub mod breakpoint;
pub mod caret;
pub mod catalogue;
pub mod chart;
pub mod configuration;
pub mod content;
pub mod difference;
pub mod findings;
pub mod history;
pub mod login;
pub mod markdown;
pub mod messages;
pub mod offerings;
pub mod outcome;
pub mod page;
pub mod pins;
pub mod question;
pub mod serve_token;
pub mod server;
pub mod server_entry;
pub mod stats;
pub mod table;
pub mod token_costs;
pub mod tool;
pub mod traffic;
pub mod trust;

pub use page::{Line, Page, Role};
pub use table::{Table, TableColumn, TableLayout};

use crate::util::units::show_count;

/// `1 tool`, `2 tools`, `2,000 tools`.
pub fn plural<N: TryInto<u64>>(count: N, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{} {}", show_count(count), if count == 1 { one } else { many })
}

pub(crate) fn first_sentence(text: &str) -> String {
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    // A dot within a word (`e.g.`, `file.txt`, `1.5`) does not end a sentence.
    let end = line.match_indices(". ").map(|(at, _)| at).find(|at| {
        let head = line.split_at(*at).0;
        let word = head.rsplit(' ').next().unwrap_or_default();
        !word.contains('.') && word.chars().count() > 2
    });
    let sentence = end.map_or(line.as_str(), |at| line.split_at(at).0);
    sentence.strip_suffix('.').unwrap_or(sentence).to_owned()
}

#[cfg(test)]
mod tests {
    use crate::present::*;

    #[test]
    fn a_sentence_ends_at_its_dot_and_not_within_words() {
        for (text, sentence) in [
            ("Reads a file. Then more.", "Reads a file"),
            ("Reads e.g. a file. More", "Reads e.g. a file"),
            ("Uses v1.5 of it.", "Uses v1.5 of it"),
            ("\n  Two\n  lines\n\nSecond paragraph", "Two lines"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), sentence);
        }
    }
}
