//! Line differences between two texts.

use std::ops::Range;

use crate::present::{Line, Page, Role};
use crate::util::diff::{DiffMark, Hunk};

/// Appends the lines of a hunk, moved right by `indent`.
pub fn lines(page: &mut Page, hunk: &Hunk, indent: usize) {
    for line in &hunk.lines {
        let label = match line.mark {
            DiffMark::Removed => Role::Error,
            DiffMark::Added => Role::Success,
            DiffMark::Same => Role::Plain,
        };
        let text = format!("{}{}", line.mark.sign(), line.text);
        page.push(Line::styled(label, text).indented(indent));
    }
}

/// Two texts under their names, with the numbers of the lines that differ.
pub fn page(hunks: &[Hunk], old: &str, new: &str) -> Page {
    let mut page = Page::from(Line::styled(Role::Title, format!("--- {old}")));
    page.push(Line::styled(Role::Title, format!("+++ {new}")));
    self::hunks(&mut page, hunks);
    page
}

/// The hunks, each below the numbers of its lines.
pub fn hunks(page: &mut Page, hunks: &[Hunk]) {
    let span = |lines: &Range<usize>| {
        if lines.is_empty() {
            "none".to_owned()
        } else {
            format!("{}-{}", lines.start + 1, lines.end)
        }
    };
    for hunk in hunks {
        let head = format!("@@ lines {}, now {} @@", span(&hunk.old), span(&hunk.new));
        page.push(Line::styled(Role::Dim, head));
        lines(page, hunk, 0);
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::present::page::LineRenderer;
    use crate::util::diff::hunks;

    #[test]
    fn differences_stand_between_what_is_the_same() {
        let text = |changed: &str| {
            let lines: Vec<String> = (1..=20)
                .map(|n| if n == 10 { format!("ten {changed}\u{1b}") } else { format!("{n}") })
                .collect();
            lines.join("\n") + "\n"
        };
        let (then, now) = (text("then"), text("now"));
        assert_snapshot!(LineRenderer::default().page(&page(&hunks(&then, &now, 3), "a", "b")), @r"
        --- a
        +++ b
        @@ lines 7-13, now 7-13 @@
         7
         8
         9
        -ten then␛
        +ten now␛
         11
         12
         13
        ");
    }

    #[test]
    fn a_new_text_has_no_lines_of_an_old_one() {
        let page = page(&hunks("", "one\ntwo\n", 2), "a", "a");
        assert_snapshot!(LineRenderer::default().page(&page), @"
        --- a
        +++ a
        @@ lines none, now 1-2 @@
        +one
        +two
        ");
    }
}
