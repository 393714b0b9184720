//! Fitting the columns of a table to the width.

use crate::util::text;

#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnSpec<C> {
    pub(super) what: C,
    /// The heading; one that starts with a space is left-aligned.
    pub(super) title: &'static str,
    /// The width in cells, with the blank before the column.
    pub(super) width: usize,
    /// Which column goes first where there is little room: the highest first, 0 never.
    pub(super) drop_priority: u8,
}

/// The columns that fit into this many cells when the first one gets at least `first`, in their
/// order; and how many cells the first one has.
pub(super) fn fitting<C: Copy>(
    columns: &[ColumnSpec<C>],
    room: usize,
    first: usize,
) -> (Vec<ColumnSpec<C>>, usize) {
    let mut kept = columns.to_vec();
    loop {
        let taken: usize = kept.iter().map(|column| column.width).sum();
        let most = kept.iter().map(|column| column.drop_priority).max().unwrap_or(0);
        if taken + first <= room || most == 0 {
            return (kept, room.saturating_sub(taken));
        }
        kept.retain(|column| column.drop_priority != most);
    }
}

/// A text left-aligned in this many cells; longer text is cut.
pub(super) fn align_left(text: &str, cells: usize) -> String {
    let cut = text::cut(text, cells);
    let pad = cells.saturating_sub(text::width(&cut));
    format!("{cut}{}", " ".repeat(pad))
}

/// A text right-aligned in this many cells; longer text is cut.
pub(super) fn right(text: &str, cells: usize) -> String {
    let cut = text::cut(text, cells.saturating_sub(1));
    let pad = cells.saturating_sub(text::width(&cut));
    format!("{}{cut}", " ".repeat(pad))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_spared_is_left_out_first() {
        let column =
            |what, width, spare| ColumnSpec { what, title: "", width, drop_priority: spare };
        let all = [column('a', 6, 0), column('b', 8, 2), column('c', 8, 1)];
        let seen = |room| {
            let (kept, first) = fitting(&all, room, 10);
            (kept.iter().map(|column| column.what).collect::<String>(), first)
        };
        assert_eq!(seen(40), ("abc".to_owned(), 18));
        assert_eq!(seen(31), ("ac".to_owned(), 17));
        assert_eq!(seen(20), ("a".to_owned(), 14));
        assert_eq!(seen(3), ("a".to_owned(), 0));
    }

    #[test]
    fn cells_have_their_width() {
        assert_eq!(align_left("abc", 5), "abc  ");
        assert_eq!(right("abc", 5), "  abc");
        assert_eq!(text::width(&align_left("a long name", 6)), 6);
        assert_eq!(text::width(&right("a long name", 6)), 6);
        assert_eq!(right("x", 0), "");
    }
}
