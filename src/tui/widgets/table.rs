//! A list of objects as a table.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use crate::present::page::json_role;
use crate::present::table::GAP;
use crate::present::{TableColumn, TableLayout};
use crate::tui::prelude::*;
use crate::tui::widgets::json_tree::step;
use crate::util::json;

const ROWS: usize = 100_000;
const COLUMNS: usize = 64;
/// How many rows are looked at for names and widths of columns.
const SAMPLE: usize = 1_000;
/// The widest column, in cells of the screen.
const WIDEST: usize = 40;
const LONGEST: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    pub key: String,
    pub width: usize,
    /// Whether numbers stand in it, which are aligned right.
    pub is_number: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableOrder {
    /// The number of the column, from 0.
    pub column: usize,
    pub is_descending: bool,
}

#[derive(Debug)]
pub struct ResultTable {
    path: Vec<String>,
    columns: Vec<ResultColumn>,
    rows: Vec<Value>,
    order: Vec<usize>,
    /// The order of the rows; `None` for that of the result.
    sorted: Option<TableOrder>,
    pub list: ListCursor,
    /// The number of the chosen column, from 0.
    column: usize,
    /// How many rows of the result are not in the table.
    left_out: usize,
}

/// The list of objects in a value: the value itself, or the longest list right below it.
fn list_of(value: &Value) -> Option<(Vec<String>, &[Value])> {
    let objects = |value: &'_ Value| {
        let is_object = |item: &Value| item.as_object().is_some_and(|object| !object.is_empty());
        let items = value.as_array().filter(|items| !items.is_empty())?;
        items.iter().take(SAMPLE).all(is_object).then_some(items.len())
    };
    if objects(value).is_some() {
        return Some((Vec::new(), value.as_array()?));
    }
    let lists =
        value.as_object()?.iter().filter_map(|(key, list)| Some((objects(list)?, key, list)));
    let (_, key, list) = lists.max_by_key(|(length, _, _)| *length)?;
    Some((vec![key.clone()], list.as_array()?))
}

impl ResultTable {
    /// The table for a value; `None` when it contains no list of objects.
    pub fn of(value: &Value) -> Option<Self> {
        let (path, list) = list_of(value)?;
        let rows: Vec<Value> = list.iter().take(ROWS).cloned().collect();
        let mut columns: Vec<ResultColumn> = Vec::new();
        for (key, value) in rows.iter().take(SAMPLE).filter_map(Value::as_object).flatten() {
            let width = text::width(&cell_text(value)).min(WIDEST);
            match columns.iter().position(|column| column.key == *key) {
                Some(at) => {
                    let column = &mut columns[at];
                    column.width = column.width.max(width);
                    column.is_number &= value.is_number() || value.is_null();
                }
                None if columns.len() < COLUMNS => columns.push(ResultColumn {
                    key: key.clone(),
                    // The title, and the mark of the order behind it.
                    width: width.max(text::width(key) + 2).min(WIDEST),
                    is_number: value.is_number(),
                }),
                None => {}
            }
        }
        let (order, left_out) = ((0..rows.len()).collect(), list.len() - rows.len());
        let (sorted, list, column) = (None, ListCursor::default(), 0);
        Some(Self { path, columns, rows, order, sorted, list, column, left_out })
    }

    pub fn is_table(value: &Value) -> bool {
        list_of(value).is_some()
    }

    pub fn row_count(&self) -> usize {
        self.order.len()
    }

    /// The cells of the rows from this one on, in the order of the columns from `first` on.
    pub fn rows_from(&self, row: usize) -> impl Iterator<Item = &Value> + '_ {
        let shown = self.order.get(row..).unwrap_or_default();
        shown.iter().filter_map(|at| self.rows.get(*at))
    }

    /// Moves by this many rows; negative moves up.
    pub fn step(&mut self, by: isize) {
        self.list.step(by, self.order.len());
    }

    /// Moves by this many columns; negative moves left.
    pub fn step_column(&mut self, by: isize) {
        let last = self.columns.len().saturating_sub(1);
        self.column = self.column.saturating_add_signed(by).min(last);
    }

    /// Sorts by the chosen column: up, then down, then as the result has it. Says which.
    pub fn sort(&mut self) -> String {
        let column = self.column;
        self.sorted = match self.sorted {
            Some(order) if order.column == column && order.is_descending => None,
            Some(order) if order.column == column => {
                Some(TableOrder { column, is_descending: true })
            }
            _ => Some(TableOrder { column, is_descending: false }),
        };
        self.order = (0..self.rows.len()).collect();
        let (Some(order), Some(own)) = (self.sorted, self.columns.get(column)) else {
            return "in result order".to_owned();
        };
        let value = |row: &usize| self.rows.get(*row).and_then(|row| row.get(&own.key));
        self.order.sort_by(|a, b| {
            let (a, b) = (value(a), value(b));
            // Missing values come last in either order.
            match (is_missing(a), is_missing(b)) {
                (false, false) if order.is_descending => compare(b, a),
                (false, false) => compare(a, b),
                (a, b) => a.cmp(&b),
            }
        });
        let way = if order.is_descending { ", descending" } else { "" };
        format!("sorted by {}{way}", own.key)
    }

    /// The numbers of the shown rows with a cell that matches the predicate.
    pub fn find(&self, is_match: impl Fn(&str) -> bool) -> Vec<usize> {
        let has = |row: &Value| {
            let mut cells = row.as_object().into_iter().flatten();
            cells.any(|(_, value)| is_match(&cell_text(value)))
        };
        self.rows_from(0).enumerate().filter(|(_, row)| has(row)).map(|(at, _)| at).collect()
    }

    pub fn row_path(&self) -> Vec<String> {
        let row = self.order.get(self.list.chosen()).copied().unwrap_or(0);
        self.path.iter().cloned().chain([row.to_string()]).collect()
    }

    pub fn chosen_path(&self) -> String {
        let row = self.order.get(self.list.chosen()).copied().unwrap_or(0);
        let list: String = self.path.iter().map(|key| step(key, false)).collect();
        let dot = if list.is_empty() { "." } else { "" };
        let key = self.columns.get(self.column).map(|column| step(&column.key, false));
        format!("{dot}{list}[{row}]{}", key.unwrap_or_default())
    }
}

/// A cell as text: strings without quotes, nested values by their size.
pub fn cell_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => shorten(text, LONGEST),
        Value::Object(map) if !map.is_empty() => Cow::Owned(format!("{{{}}}", map.len())),
        Value::Array(items) if !items.is_empty() => Cow::Owned(format!("[{}]", items.len())),
        other => Cow::Owned(json::compact(other)),
    }
}

fn is_missing(value: Option<&Value>) -> bool {
    value.is_none_or(Value::is_null)
}

/// Numbers by their size, texts without regard to capitals, all else by its JSON.
fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else { return Ordering::Equal };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(a), Value::String(b)) => {
            a.to_lowercase().cmp(&b.to_lowercase()).then_with(|| a.cmp(b))
        }
        (Value::Number(_), _) => Ordering::Less,
        (_, Value::Number(_)) => Ordering::Greater,
        (a, b) => a.to_string().cmp(&b.to_string()),
    }
}

pub fn draw(pen: &mut Pen<'_>, table: &ResultTable, area: Rect) {
    let shown = columns_in(table, usize::from(area.width));
    let columns = || table.columns[shown.clone()].iter().enumerate();
    let title = |(at, column): (usize, &ResultColumn)| {
        let order = table.sorted.filter(|order| order.column == shown.start + at);
        let mark = match order.map(|order| order.is_descending) {
            Some(true) => " ▼",
            Some(false) => " ▲",
            None => "",
        };
        let role = pen.mark(shown.start + at == table.column).unwrap_or(Role::Title);
        present::Line::styled(role, format!("{}{mark}", column.key))
    };
    let mut left = usize::from(area.width);
    let layout = columns().map(|(_, column)| {
        let shown = TableColumn::new("");
        let width = column.width.min(left);
        left = left.saturating_sub(width + GAP);
        (if column.is_number { shown.right() } else { shown }, width)
    });
    let layout = TableLayout::of(layout, None);
    let [head, rows] = top(area, 1);
    pen.put(pen.row(&layout, columns().map(title)), head);
    let height = usize::from(rows.height);
    let first = pen.selectable(rows, table.list, table.row_count());
    for ((number, row), place) in table.rows_from(first).enumerate().zip(rows.rows()) {
        let cells = columns().map(|(_, column)| cell(row.get(&column.key)));
        let line = pen.row(&layout, cells);
        pen.put(
            match pen.mark(first + number == table.list.chosen()) {
                Some(role) => pane::filled(pen.styler, line, role, place.width),
                None => line,
            },
            place,
        );
    }
    let left = table.row_count().saturating_sub(first + height) + table.left_out;
    pen.more(area, left);
}

fn cell(value: Option<&Value>) -> present::Line {
    let text = value.map(cell_text).unwrap_or_default();
    let role = match value {
        Some(Value::String(_)) | None => Role::Plain,
        Some(_) => json_role(&text),
    };
    present::Line::styled(role, text)
}

/// What the title of the pane says of the table: which column of how many, and its order.
pub fn summary(table: &ResultTable) -> String {
    let (column, all) = (table.column + 1, table.columns.len());
    format!("{} rows  col {column}/{all}", show_count(table.row_count()))
}

/// The columns that are seen: from the first one on where the chosen one fits, else as few are left
/// out on the left as that needs.
fn columns_in(table: &ResultTable, width: usize) -> std::ops::Range<usize> {
    let all = &table.columns;
    let taken = |from: usize, to: usize| -> usize {
        all[from..to].iter().map(|column| column.width + GAP).sum()
    };
    let chosen = table.column;
    let mut first = 0;
    while first < chosen && taken(first, chosen + 1) > width + GAP {
        first += 1;
    }
    let mut end = (chosen + 1).min(all.len());
    // The last one may be cut.
    while end < all.len() && taken(first, end) < width {
        end += 1;
    }
    first..end
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(table: &ResultTable) -> Vec<String> {
        table.rows_from(0).map(|row| row["name"].to_string()).collect()
    }

    #[test]
    fn the_longest_list_of_objects_is_the_table() {
        let value = json!({ "total": 3, "few": [{ "a": 1 }], "items": [{ "b": 1 }, { "c": "x" }] });
        let table = ResultTable::of(&value).unwrap();
        let keys: Vec<&str> = table.columns.iter().map(|column| column.key.as_str()).collect();
        assert_eq!((keys, table.row_count()), (vec!["b", "c"], 2));
        assert!(ResultTable::of(&json!([{ "a": 1 }])).is_some());
        for other in [json!([]), json!([1, 2]), json!({ "a": { "b": 1 } }), json!([{ "a": 1 }, 2])]
        {
            assert!(!ResultTable::is_table(&other), "{other}");
        }
    }

    #[test]
    fn rows_are_sorted_up_then_down_then_as_they_came() {
        let value = json!([
            { "name": "b", "n": 10 }, { "name": "A", "n": 9 }, { "name": "c", "n": null },
            { "name": "d" },
        ]);
        let mut table = ResultTable::of(&value).unwrap();
        assert_eq!(table.sort(), "sorted by name");
        assert_eq!(names(&table), [r#""A""#, r#""b""#, r#""c""#, r#""d""#]);
        table.step_column(1);
        assert!(table.columns[1].is_number);
        table.sort();
        assert_eq!(names(&table)[..2], [r#""A""#, r#""b""#]);
        assert_eq!(table.sort(), "sorted by n, descending");
        // What has no number stays at the end.
        assert_eq!(names(&table), [r#""b""#, r#""A""#, r#""c""#, r#""d""#]);
        assert_eq!(table.row_path(), ["0"]);
        assert_eq!(table.sort(), "in result order");
        assert_eq!(names(&table)[0], r#""b""#);
    }

    #[test]
    fn the_path_of_a_cell_leads_jq_to_it() {
        let value = json!({ "my items": [{ "a b": 1 }, { "a b": 2 }] });
        let mut table = ResultTable::of(&value).unwrap();
        table.step(1);
        let path = table.chosen_path();
        assert_eq!(crate::util::jq::query(&path, &value).unwrap(), [json!(2)], "{path}");
        assert_eq!(table.find(|cell| cell == "2"), [1]);
    }

    #[test]
    fn a_table_without_end_is_bounded() {
        let wide: serde_json::Map<_, _> = (0..500).map(|n| (format!("k{n}"), json!("x"))).collect();
        let value = json!(vec![Value::Object(wide); 3]);
        assert_eq!(ResultTable::of(&value).unwrap().columns.len(), COLUMNS);
        let long = json!(vec![json!({ "text": "x".repeat(5_000) }); ROWS + 7]);
        let table = ResultTable::of(&long).unwrap();
        assert_eq!((table.row_count(), table.left_out, table.columns[0].width), (ROWS, 7, WIDEST));
    }
}
