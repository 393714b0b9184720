//! Writing CSV (RFC 4180).
//!
//! Owns: quoting, and that text stays text: a cell that a spreadsheet would take for a formula
//! begins with an apostrophe. Never does: know what a column means.

use crate::util::text;

/// One cell of a row, escaped when the row is written.
#[derive(Debug, Clone)]
pub enum Cell {
    /// Text of any origin, which is quoted and kept from being a formula.
    Text(String),
    /// A number that toolhost formatted, written unchanged.
    Number(String),
    /// A cell without any content.
    Empty,
}

impl Cell {
    /// A cell with a whole number.
    pub fn count(number: u64) -> Self {
        Self::Number(number.to_string())
    }

    /// A cell with a text, or an empty one for `None`.
    pub fn text(text: Option<&str>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.to_owned()))
    }
}

/// The rows as text; the first is the head.
pub fn table(rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut out = String::new();
    for row in rows {
        for (index, cell) in row.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            match cell {
                Cell::Empty => {}
                Cell::Number(number) => out.push_str(number),
                Cell::Text(text) => quote(text, &mut out),
            }
        }
        out.push_str("\r\n");
    }
    out
}

fn quote(words: &str, out: &mut String) {
    let safe = text::safe_line(words);
    let formula = safe.trim_start().starts_with(['=', '+', '-', '@']);
    let needs = formula || safe.contains([',', '"', '\'', ' ']) || safe.is_empty();
    if !needs {
        out.push_str(&safe);
        return;
    }
    out.push('"');
    if formula {
        out.push('\'');
    }
    out.push_str(&safe.replace('"', "\"\""));
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_a_formula() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let row = vec![text("a-b"), Cell::count(3), Cell::Empty, Cell::Number("-1.5".to_owned())];
        assert_eq!(table([row]), "a-b,3,,-1.5\r\n");
        for (given, cell) in [
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            (" =1", "\"' =1\""),
            ("\t=1", "\"' =1\""),
            ("a,b", "\"a,b\""),
            ("a\nb", "a␊b"),
            ("\u{202e}x", "⟨U+202E⟩x"),
        ] {
            let shown = table([vec![text(given)]]);
            assert_eq!(shown, format!("{cell}\r\n"), "{given:?}");
        }
    }
}
