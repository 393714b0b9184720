//! Invisible characters and look-alikes.
//!
//! Lets pass: what emoji and scripts are written with (a variation selector or joiner between
//! characters that are not ASCII), accents, and words of any one script. Soft hyphens and a byte
//! order mark at the start are typesetting: low.

use unicode_security::confusable_detection::skeleton;

use super::{FindingCollector, FindingSeverity};
use crate::util::text::is_invisible;

/// The most characters of a word that is compared with its look-alike.
const LONGEST_WORD: usize = 64;

pub(super) fn check(text: &str, findings: &mut FindingCollector) {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b) || matches!(b, b'\n' | b'\t' | b'\r')) {
        return;
    }
    invisible(text, findings);
    mixed(text, findings);
}

fn invisible(text: &str, findings: &mut FindingCollector) {
    // A text may be made of nothing else: each reason is told once.
    let mut reasons: Vec<&str> = Vec::new();
    let mut before = None;
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let after = letters.peek().map(|(_, next)| *next);
        let last = before.replace(c);
        if matches!(c, '\n' | '\t' | '\r') || !(c.is_control() || is_invisible(c)) {
            continue;
        }
        let foreign = |c: Option<char>| c.is_some_and(|c| !c.is_ascii());
        let (severity, why) = match c {
            // A keycap or an emoji and how it is drawn; Indic and Persian spelling.
            '\u{fe0e}' | '\u{fe0f}' if foreign(last) || last.is_some_and(is_keycap) => continue,
            '\u{200c}' | '\u{200d}' if foreign(last) && foreign(after) => continue,
            '\u{feff}' if at == 0 => (FindingSeverity::Low, "it starts with a byte order mark"),
            '\u{ad}' => (FindingSeverity::Low, "it contains soft hyphens"),
            '\u{e0020}'..='\u{e007f}' => {
                (FindingSeverity::High, "it contains tag characters, which only a model reads")
            }
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                (FindingSeverity::High, "it reverses the direction of text")
            }
            c if c.is_control() => {
                (FindingSeverity::High, "it contains terminal control characters")
            }
            _ => (FindingSeverity::High, "it contains invisible characters"),
        };
        if !reasons.contains(&why) {
            reasons.push(why);
            findings.add(severity, "hidden", &around(text, at), why);
        }
    }
}

fn is_keycap(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '#' | '*')
}

/// A word with ASCII letters in which other letters look like ASCII ones.
fn mixed(text: &str, findings: &mut FindingCollector) {
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
        if word.is_ascii() || word.chars().count() > LONGEST_WORD {
            continue;
        }
        let latin = word.chars().any(|c| c.is_ascii_alphabetic());
        let looks: String = skeleton(word).collect();
        // Accents stay in a skeleton, so that only borrowed letters make it ASCII.
        if latin && looks.is_ascii() && looks != word && !word.chars().any(|c| c == 'ı') {
            let why = "letters of another script replace Latin ones in it";
            findings.add(FindingSeverity::Medium, "look-alike", word, why);
        }
    }
}

pub(super) fn around(text: &str, at: usize) -> String {
    const BEFORE: usize = 20;
    let start = text.get(..at).unwrap_or_default().char_indices().rev().nth(BEFORE);
    let start = start.map_or(0, |(start, _)| start);
    text.get(start..).unwrap_or_default().chars().take(60).collect()
}
