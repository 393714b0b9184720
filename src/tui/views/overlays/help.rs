//! The help: what every key does, those of the view in front first.

use crate::tui::keys::{Binding, KEY_TABLES};
use crate::tui::prelude::*;
use crate::tui::widgets::page::{has_words, side_by_side};

/// The width of the window, where there is room, and from where on it has two columns.
const WIDTH: u16 = 150;
const TWO_COLUMNS: u16 = 96;
const KEYS: usize = 14;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct HelpWindow {
    pub filter: ListFilter,
    pub position: ScrollPosition,
}

pub fn draw(pen: &mut Pen<'_>, state: &AppState, window: &HelpWindow, area: Rect) {
    let inner = pen.open_over(area, (WIDTH, area.height.saturating_sub(4)), "Help");
    let page = pen.filter(inner, &window.filter, None);
    let columns = if page.width >= TWO_COLUMNS { 2 } else { 1 };
    let width = usize::from(page.width / columns);
    let sections = sections(pen.styler, state, &window.filter.text().to_lowercase(), width);
    let lines = match columns {
        _ if sections.is_empty() => pen.lines(Role::Dim, "No key does that."),
        1 => sections.concat(),
        _ => beside(pen.styler, sections, width),
    };
    pen.page(&lines, &window.position, page);
}

/// The tables of keys, with what holds here first, and the marks; of each what contains the words.
fn sections(
    styler: Styler,
    state: &AppState,
    words: &str,
    width: usize,
) -> Vec<Vec<Line<'static>>> {
    let here = state.view_key_contexts();
    let rank =
        |place: &KeyContext| here.iter().position(|when| when == place).unwrap_or(usize::MAX);
    let mut places = KEY_TABLES.to_vec();
    places.sort_by_key(rank);
    let problems = state.context.problems.iter().map(|text| (String::new(), text.as_str()));
    let mut tables = vec![("Settings problems", problems.collect::<Vec<_>>())];
    tables.extend(places.into_iter().map(|place| {
        let bindings = state.context.keys.bindings(place);
        let shown = bindings.iter().filter(|binding| !binding.about.is_empty());
        let row = |binding: &Binding| {
            let same = bindings.iter().filter(|other| other.action == binding.action);
            let keys: Vec<String> = same.map(|same| same.key.to_string()).collect();
            (keys.join(" "), binding.about)
        };
        (place.title, shown.map(row).collect())
    }));
    tables.push(("Marks of tools", MARKS.map(|(mark, about)| (mark.to_owned(), about)).to_vec()));
    let section = |(title, rows): (&str, Vec<(String, &str)>)| {
        let fits = |(key, about): &(String, &str)| {
            has_words(&format!("{title} {key} {about}").to_lowercase(), words)
        };
        let row = |(key, about): (String, &str)| {
            let role = if key.is_empty() { Role::Error } else { Role::Plain };
            let room = width.saturating_sub(KEYS + 4);
            Line::from(vec![
                styler.span(Role::Key, format!("  {} ", styler.cell(&key, KEYS))),
                styler.span(role, styler.cell(about, room)),
            ])
        };
        let mut lines = vec![styler.line(Role::Name, title)];
        lines.extend(rows.into_iter().filter(fits).map(row));
        lines.push(Line::default());
        lines
    };
    tables.into_iter().map(section).filter(|lines| lines.len() > 2).collect()
}

const MARKS: [(&str, &str); 10] = [
    ("RO", "only reads, as its definition says"),
    ("WRITE", "may change something"),
    ("DESTRUCTIVE", "may destroy something"),
    ("ASKS", "asks for approval before a call"),
    ("TASK", "its server runs it as a task, followed until it ends"),
    ("CHANGED", "differs from its declaration or pin"),
    ("SLOW", "slower than declared; see its documentation"),
    ("UNAVAILABLE", "cannot be called; see its documentation"),
    ("A", "on a server: asks before each call of its tools"),
    ("~3", "on a server: this many tools differ from their declaration or pin"),
];

/// Two columns of about the same length, each with whole sections.
fn beside(styler: Styler, sections: Vec<Vec<Line<'static>>>, column: usize) -> Vec<Line<'static>> {
    let half = sections.iter().map(Vec::len).sum::<usize>().div_ceil(2);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for section in sections {
        if left.len() < half { left.extend(section) } else { right.extend(section) }
    }
    side_by_side(styler, left, right, column)
}
