//! Tables that fit the width: columns shrink, then disappear; cells never wrap.

use crate::present::{Line, Page, Role};
use crate::util::text;

/// The cells between two columns.
pub const GAP: usize = 2;
/// Maximum cell width if nothing else limits it: every row is padded to the widest one,
/// so a text of one megabyte in a table of a thousand rows would add a gigabyte of blanks.
const MAX_CELL_WIDTH: usize = 1_000;

#[derive(Debug, Clone)]
pub struct TableColumn {
    title: String,
    right: bool,
    /// The minimum width when truncated; `None` keeps it whole as long as possible.
    min: Option<usize>,
    /// It is truncated only after all droppable columns were dropped.
    shrinks_last: bool,
    /// Dropped when space is short, highest number first; 0 is never dropped.
    drop_rank: u8,
}

impl TableColumn {
    /// A column that is kept whole and never dropped.
    pub fn new(title: impl AsRef<str>) -> Self {
        let title = text::safe_line(title.as_ref()).into_owned();
        Self { title, right: false, min: None, shrinks_last: false, drop_rank: 0 }
    }

    /// Numbers: aligned to the right.
    #[must_use]
    pub fn right(self) -> Self {
        Self { right: true, ..self }
    }

    /// May be truncated to `min` cells before other columns are dropped.
    #[must_use]
    pub fn shrinks_to(self, min: usize) -> Self {
        Self { min: Some(min), ..self }
    }

    /// May be truncated to `min` cells after all droppable columns were dropped.
    #[must_use]
    pub fn shrinks_last_to(self, min: usize) -> Self {
        Self { shrinks_last: true, ..self.shrinks_to(min) }
    }

    /// May be dropped, before all columns with a lower `rank`.
    #[must_use]
    pub fn droppable(self, rank: u8) -> Self {
        Self { drop_rank: rank, ..self }
    }
}

#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<TableColumn>,
    rows: Vec<TableRow>,
}

#[derive(Debug)]
struct TableRow {
    cells: Vec<Line>,
    details: Vec<Line>,
}

impl Table {
    pub fn new(columns: impl IntoIterator<Item = TableColumn>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Appends a row: one line of text for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Line>) {
        self.rows.push(TableRow { cells: cells.into_iter().collect(), details: Vec::new() });
    }

    /// Adds a page below the last row.
    pub fn details(&mut self, page: &Page) {
        page.lines().iter().cloned().for_each(|line| self.detail_line(line));
    }

    /// Adds a separate line below the last row.
    pub fn detail_line(&mut self, line: Line) {
        if let Some(row) = self.rows.last_mut() {
            row.details.push(line);
        }
    }

    /// Lays the table out in at most `width` cells (`None`: unlimited). Columns without
    /// any text are omitted.
    pub fn layout(self, width: Option<usize>) -> Page {
        let mut page = Page::default();
        if self.rows.is_empty() {
            return page;
        }
        let widest =
            |at| self.rows.iter().filter_map(|row| row.cells.get(at)).map(Line::width).max();
        let columns = self.columns.into_iter().enumerate();
        let columns = columns.map(|(at, column)| (column, widest(at).unwrap_or(0)));
        let layout = TableLayout::of(columns, width);
        page.push(layout.head());
        for row in self.rows {
            page.push(layout.line(row.cells));
            for below in row.details {
                let below = below.indented(GAP);
                page.push(below.truncate(width.unwrap_or(usize::MAX)));
            }
        }
        page
    }
}

/// The columns of a table as they fit the width.
#[derive(Debug)]
pub struct TableLayout {
    columns: Vec<TableColumn>,
    /// The width that each has when there is room; `None` for one without any text.
    natural: Vec<Option<usize>>,
    /// The width that each gets; `None` omits it.
    widths: Vec<Option<usize>>,
}

impl TableLayout {
    /// Columns, each with the width of its widest cell, in at most `room` cells.
    pub fn of(
        columns: impl IntoIterator<Item = (TableColumn, usize)>,
        room: Option<usize>,
    ) -> Self {
        let natural = |(column, widest): (TableColumn, usize)| {
            let widest = widest.min(MAX_CELL_WIDTH);
            let natural = (widest > 0).then(|| widest.max(text::width(&column.title)));
            (column, natural)
        };
        let (columns, natural): (Vec<_>, Vec<_>) = columns.into_iter().map(natural).unzip();
        let mut layout = Self { columns, widths: natural.clone(), natural };
        if let Some(room) = room {
            layout.fit(room);
        }
        layout
    }

    pub fn head(&self) -> Line {
        self.line(self.columns.iter().map(|column| Line::styled(Role::Title, &column.title)))
    }

    /// A row: one line of text for each column.
    pub fn line(&self, cells: impl IntoIterator<Item = Line>) -> Line {
        let mut line = Line::default();
        for ((column, width), cell) in self.columns.iter().zip(&self.widths).zip(cells) {
            if let Some(width) = *width {
                place(&mut line, cell, width, column.right);
            }
        }
        line
    }

    fn fit(&mut self, room: usize) {
        loop {
            let soon = |column: &TableColumn| column.min.filter(|_| !column.shrinks_last);
            self.shrink(room, soon);
            if total(&self.widths) <= room {
                return;
            }
            let shown = |at: &usize| self.widths[*at].is_some();
            let rank = |at: &usize| self.columns[*at].drop_rank;
            let next =
                (0..self.columns.len()).filter(|at| shown(at) && rank(at) > 0).max_by_key(rank);
            let Some(next) = next else {
                self.shrink(room, |column| column.min);
                return self.shrink(room, |_| Some(1));
            };
            // The space this frees goes back to the truncated columns.
            self.widths[next] = None;
            for (width, natural) in self.widths.iter_mut().zip(&self.natural) {
                *width = width.and(*natural);
            }
        }
    }

    /// Shrinks the widest column that is above its minimum until all fit or none can shrink.
    fn shrink(&mut self, room: usize, minimum: impl Fn(&TableColumn) -> Option<usize>) {
        loop {
            let over = total(&self.widths).saturating_sub(room);
            let columns = self.widths.iter_mut().zip(&self.columns);
            let shrinkable = columns.filter_map(|(width, column)| {
                let (cells, min) = ((*width)?, minimum(column)?);
                (cells > min).then_some((width, cells, min))
            });
            let widest = shrinkable.max_by_key(|(_, cells, _)| *cells).filter(|_| over > 0);
            let Some((width, cells, min)) = widest else { return };
            *width = Some(cells.saturating_sub(over).max(min));
        }
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten();
    shown.clone().sum::<usize>() + GAP * shown.count().saturating_sub(1)
}

fn place(line: &mut Line, cell: Line, width: usize, right: bool) {
    let start = if line.is_empty() { 0 } else { line.width() + GAP };
    line.pad_to(start);
    let cell = cell.truncate(width);
    if right {
        line.pad_to(start + width - cell.width());
    }
    line.append(cell);
    line.pad_to(start + width);
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::present::page::LineRenderer;

    fn sample() -> Table {
        let mut table = Table::new([
            TableColumn::new("NAME").shrinks_to(12).droppable(0),
            TableColumn::new("SPEED").droppable(2),
            TableColumn::new("CALLS").right().droppable(1),
            TableColumn::new("DESCRIPTION").shrinks_to(16),
        ]);
        table.row([
            Line::styled(Role::Name, "calculator"),
            Line::plain("fast"),
            Line::plain("12"),
            Line::plain("Computes an expression of numbers and operators"),
        ]);
        table.row([
            Line::styled(Role::Name, "日本語"),
            Line::plain("slow"),
            Line::plain("3"),
            Line::plain("Wide characters"),
        ]);
        table.detail_line(Line::plain("a remark about the row above"));
        table
    }

    fn render(table: Table, width: Option<usize>) -> String {
        LineRenderer::default().page(&table.layout(width))
    }

    #[test]
    fn a_wide_table_shows_everything() {
        assert_snapshot!(render(sample(), None), @r"
        NAME        SPEED  CALLS  DESCRIPTION
        calculator  fast      12  Computes an expression of numbers and operators
        日本語      slow       3  Wide characters
          a remark about the row above
        ");
    }

    #[test]
    fn a_narrow_table_cuts_then_drops() {
        assert_snapshot!(render(sample(), Some(44)), @r"
        NAME        SPEED  CALLS  DESCRIPTION
        calculator  fast      12  Computes an expre…
        日本語      slow       3  Wide characters
          a remark about the row above
        ");
        assert_snapshot!(render(sample(), Some(30)), @r"
        NAME        DESCRIPTION
        calculator  Computes an expre…
        日本語      Wide characters
          a remark about the row above
        ");
        assert_snapshot!(render(sample(), Some(12)), @r"
        NAME       …
        calculat…  …
        日本語     …
          a remark …
        ");
    }

    #[test]
    fn a_column_that_is_cut_last_outlives_those_that_can_be_dropped() {
        let table = || {
            let mut table = Table::new([
                TableColumn::new("NAME").shrinks_last_to(6),
                TableColumn::new("SOURCE").shrinks_to(4).droppable(1),
                TableColumn::new("DESCRIPTION").shrinks_to(11),
            ]);
            let name = "a-name-of-18-cells";
            table.row([Line::plain(name), Line::plain("a-source"), Line::plain("It does a thing")]);
            table
        };
        assert_snapshot!(render(table(), Some(40)), @r"
        NAME                SOURCE   DESCRIPTION
        a-name-of-18-cells  a-sour…  It does a …
        ");
        assert_snapshot!(render(table(), Some(33)), @r"
        NAME                DESCRIPTION
        a-name-of-18-cells  It does a th…
        ");
        assert_snapshot!(render(table(), Some(22)), @r"
        NAME       DESCRIPTION
        a-name-o…  It does a …
        ");
    }

    #[test]
    fn one_huge_cell_does_not_blow_up_the_others() {
        let mut table = Table::new([TableColumn::new("A"), TableColumn::new("B")]);
        for n in 0..100 {
            table
                .row([Line::plain("x".repeat(if n == 7 { 1 << 20 } else { 1 })), Line::plain("y")]);
        }
        assert!(render(table, None).len() < 200_000);
    }

    #[test]
    fn an_empty_column_is_left_out() {
        let mut table = Table::new([TableColumn::new("A"), TableColumn::new("B")]);
        table.row([Line::plain("x"), Line::plain("")]);
        assert_eq!(render(table, None), "A\nx\n");
    }

    proptest! {
        #[test]
        fn a_column_starts_in_the_same_cell_of_each_row(
            cells in proptest::collection::vec("[a-z\\PC日é\u{301}\u{1f3fb}\u{200d}\u{1b}]{0,12}", 2..8),
        ) {
            let mut table = Table::new([TableColumn::new("A"), TableColumn::new("B")]);
            for cell in &cells {
                table.row([Line::plain(cell.replace('|', "")), Line::plain("|")]);
            }
            let starts: Vec<usize> = render(table, None)
                .lines()
                .skip(1)
                .map(|line| text::width(line.rsplit_once('|').unwrap().0))
                .collect();
            prop_assert!(starts.windows(2).all(|pair| pair[0] == pair[1]), "{starts:?}");
        }

        #[test]
        fn no_line_is_wider_than_the_terminal(
            rows in proptest::collection::vec(proptest::collection::vec(any::<String>(), 3), 1..6),
            width in 12_usize..100,
        ) {
            let mut table = Table::new([
                TableColumn::new("A").shrinks_to(3),
                TableColumn::new("B").droppable(1),
                TableColumn::new("C").right(),
            ]);
            for row in &rows {
                table.row(row.iter().map(Line::plain));
            }
            for line in table.layout(Some(width)).lines() {
                prop_assert!(line.width() <= width, "{line:?}");
            }
        }
    }
}
