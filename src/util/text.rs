//! The one sanitiser for untrusted text.
//!
//! Escapes instead of stripping, so that evidence stays visible: `ESC` becomes `␛`, other C0
//! controls and DEL `\x..`, C1 controls, format characters (bidirectional, zero-width, tags,
//! variation selectors) and fillers `⟨U+…⟩`, a carriage return `␍`. At most eight combining marks
//! follow one base character.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

const MARKS_A_BASE: usize = 8;

/// Makes text safe to show over several lines: newline and tab stay, everything else that could
/// steer a terminal or mislead a reader becomes a visible escape. Idempotent.
pub fn safe(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n' || c == '\t')
}

/// Makes text safe to show on one line: like [`safe`], with newline as `␊` and tab as a space.
pub fn safe_line(text: &str) -> Cow<'_, str> {
    match escape(text, |c| c == '\n' || c == '\t') {
        escaped if escaped.contains(['\n', '\t']) => {
            Cow::Owned(escaped.replace('\n', "␊").replace('\t', " "))
        }
        escaped => escaped,
    }
}

/// Cuts a line to `width` cells, ending in `…` when something was cut.
///
/// The text must already be safe: the width of a control character is not defined.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if unicode_width::UnicodeWidthStr::width(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let mut out = String::new();
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        used += w;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    Cow::Owned(out)
}

/// At most `most` characters of a text; of a longer one also how long it is. For untrusted text
/// that only illustrates: a message, a description, a log line.
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    // A character is a byte at least, so that short texts need no counting.
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((at, _)) => {
            let head = text.get(..at).unwrap_or_default();
            Cow::Owned(format!("{head}… ({} characters)", text.chars().count()))
        }
    }
}

/// Whether a list of words, with blanks between them, has this one.
pub fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

/// The word as a POSIX shell reads it back.
pub fn shell_quote(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "_-.,:/=@%+".contains(c);
    if !word.is_empty() && word.chars().all(harmless) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words as one command line.
pub fn shell_quoted(words: &[String]) -> String {
    words.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")
}

/// The text as a part of the name of a variable: `X_TEAM` for `X-Team`.
pub fn variable_name(text: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    text.chars().map(fits).collect()
}

pub fn truncate(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

/// The number of cells a safe line takes.
pub fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\n' || b == b'\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut marks = 0;
    for c in text.chars() {
        if keep(c) {
            marks = 0;
            out.push(c);
        } else if let Some(escaped) = escaped(c) {
            marks = 0;
            out.push_str(&escaped);
        } else if is_mark(c) {
            marks += 1;
            if marks <= MARKS_A_BASE {
                out.push(c);
            }
        } else {
            marks = 0;
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The visible form of a character that must not be shown unchanged.
fn escaped(c: char) -> Option<String> {
    let mut out = String::new();
    match c {
        '\x1b' => out.push('␛'),
        '\r' => out.push('␍'),
        '\0'..='\x1f' | '\x7f' => write!(out, "\\x{:02x}", c as u32).ok()?,
        '\u{80}'..='\u{9f}' => write!(out, "⟨U+{:04X}⟩", c as u32).ok()?,
        _ if is_invisible(c) => write!(out, "⟨U+{:04X}⟩", c as u32).ok()?,
        _ => return None,
    }
    Some(out)
}

/// Format characters, fillers, variation selectors, tags, private use and noncharacters: everything
/// that a reader cannot see or a terminal may act on.
pub fn is_invisible(c: char) -> bool {
    matches!(c as u32,
        0x00AD // soft hyphen
        | 0x034F // combining grapheme joiner
        | 0x061C // Arabic letter mark
        | 0x0600..=0x0605 | 0x06DD | 0x070F | 0x0890..=0x0891 | 0x08E2
        | 0x115F..=0x1160 // Hangul fillers
        | 0x17B4..=0x17B5
        | 0x180B..=0x180F // Mongolian selectors and vowel separator
        | 0x200B..=0x200F // zero width, marks
        | 0x2028..=0x202E // line and paragraph separator, embeddings, overrides
        | 0x2060..=0x206F // word joiner, invisible operators, isolates
        | 0x3164 // Hangul filler
        | 0xE000..=0xF8FF // private use
        | 0xFE00..=0xFE0F // variation selectors
        | 0xFEFF // byte order mark
        | 0xFFA0 // half-width filler
        | 0xFFF0..=0xFFFB | 0xFFFE..=0xFFFF
        | 0x1_10BD | 0x1_10CD | 0x1_3430..=0x1_343F
        | 0x1_BCA0..=0x1_BCA3 | 0x1_D173..=0x1_D17A
        | 0xE_0000..=0x10_FFFF // tags, selectors supplement, private planes
    )
}

fn is_mark(c: char) -> bool {
    c.width() == Some(0)
}

/// The words of an identifier in lower case: `authToken`, `AUTH_TOKEN` and `auth-token` are `auth`
/// and `token`.
pub fn identifier_words(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            parts.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(last) = parts.last_mut()
        {
            last.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    parts.retain(|word| !word.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_quoted_when_a_shell_would_split_them() {
        let words =
            |all: &[&str]| shell_quoted(&all.iter().map(|&w| w.to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["a", "b"]), "a b");
        assert_eq!(words(&["a b", "it's", ""]), r"'a b' 'it'\''s' ''");
    }

    #[test]
    fn plain_text_is_not_touched() {
        assert!(matches!(safe("hello\nworld\t!"), Cow::Borrowed(_)));
        assert_eq!(safe("schön\nworld\t!"), "schön\nworld\t!");
    }

    #[test]
    fn escapes_become_visible() {
        assert_eq!(safe("\x1b[31mred"), "␛[31mred");
        assert_eq!(safe("a\rb\x07\x7f"), "a␍b\\x07\\x7f");
        assert_eq!(safe("\u{9b}31m"), "⟨U+009B⟩31m");
        assert_eq!(safe("a\u{202e}b\u{200b}c\u{e0069}"), "a⟨U+202E⟩b⟨U+200B⟩c⟨U+E0069⟩");
    }

    #[test]
    fn a_line_has_no_line_breaks() {
        assert_eq!(safe_line("a\nb\tc"), "a␊b c");
        assert_eq!(safe_line("ä\nb\tc\x1b"), "ä␊b c␛");
    }

    #[test]
    fn marks_are_capped() {
        let zalgo = format!("e{}x", "\u{301}".repeat(50));
        assert_eq!(safe(&zalgo).chars().count(), 1 + MARKS_A_BASE + 1);
    }

    #[test]
    fn a_long_text_is_shortened_and_says_so() {
        assert_eq!(shorten("日本語", 3), "日本語");
        assert_eq!(shorten("日本語です", 3), "日本語… (5 characters)");
        assert_eq!(
            (truncate("日本語", 3), truncate("日本語です", 3)),
            ("日本語".into(), "日本語…".into())
        );
    }

    #[test]
    fn a_name_has_the_same_words_however_they_are_joined() {
        for (name, words) in [
            ("authToken", &["auth", "token"][..]),
            ("AUTH_TOKEN", &["auth", "token"]),
            ("--auth.token", &["auth", "token"]),
            ("oauth2Token", &["oauth2", "token"]),
            ("token", &["token"]),
            ("", &[]),
        ] {
            assert_eq!(identifier_words(name), words, "{name}");
        }
    }

    #[test]
    fn cutting_counts_cells() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello!", 5), "hell…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("hello", 0), "");
    }

    proptest! {
        #[test]
        fn nothing_dangerous_survives_and_a_second_pass_changes_nothing(text in any::<String>()) {
            let once = safe(&text).into_owned();
            prop_assert!(once.chars().all(|c| c == '\n' || c == '\t' || !(c.is_control() || is_invisible(c))));
            prop_assert_eq!(safe(&once).into_owned(), once);
        }

        #[test]
        fn a_cut_line_fits(text in any::<String>(), cells in 0_usize..40) {
            let line = safe_line(&text).into_owned();
            prop_assert!(width(&cut(&line, cells)) <= cells || cells == 0);
        }
    }
}
