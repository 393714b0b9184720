//! The mouse: tabs, rows, the wheel; the sizes of panes; and a screen without colours.

use std::fmt::Write as _;

use super::room_with_server;
use crate::support::{Pty, Sandbox};

const TOOLS: [&str; 2] = ["--tools", "tools.yaml"];

/// A project of so many tools.
fn room(tools: usize) -> Sandbox {
    let room = Sandbox::new();
    let mut text = "tools:\n".to_owned();
    for number in 0..tools {
        writeln!(text, "  - {{ name: tool{number:02}, command: [echo, hi] }}").unwrap();
    }
    room.file("tools.yaml", &text);
    room
}

/// The place of a text on the screen, from 1 as terminals count: its column and its row.
fn place(pty: &Pty, text: &str) -> (usize, usize) {
    let shown = pty.shown();
    let mut rows = shown.lines().enumerate();
    let found = rows.find_map(|(row, line)| {
        let at = line.find(text)?;
        Some((line[..at].chars().count() + 1, row + 1))
    });
    found.unwrap_or_else(|| panic!("{text:?} is not on the screen:\n{shown}"))
}

/// What a terminal sends for the mouse (SGR): the button or the wheel, and whether it is let go.
fn mouse(pty: &mut Pty, button: u8, (column, row): (usize, usize), is_release: bool) {
    let end = if is_release { 'm' } else { 'M' };
    pty.type_keys(&format!("\u{1b}[<{button};{column};{row}{end}"));
}

fn click(pty: &mut Pty, place: (usize, usize)) {
    mouse(pty, 0, place, false);
    mouse(pty, 0, place, true);
}

/// The console, once it listens to the mouse.
fn console(room: &Sandbox, rows: u16, columns: u16) -> Pty {
    let mut pty = Pty::console(room, &TOOLS, rows, columns);
    pty.expect_shown("tool00").expect("\u{1b}[?1006h");
    pty
}

#[test]
fn a_click_chooses_a_row_or_a_view_and_the_wheel_scrolls() {
    let room = room(60);
    let mut pty = console(&room, 30, 120);
    let row = place(&pty, "tool05");
    click(&mut pty, row);
    pty.expect_shown("❯ tool05");
    // The wheel moves what is under the pointer, whatever has the focus.
    for _ in 0..9 {
        mouse(&mut pty, 65, row, false);
    }
    pty.expect_shown("❯ tool32");
    for _ in 0..9 {
        mouse(&mut pty, 64, row, false);
    }
    pty.expect_shown("❯ tool05");
    let tab = place(&pty, "6 History");
    click(&mut pty, tab);
    pty.expect_shown("[6 History]");
    let tab = place(&pty, "1 Tools");
    click(&mut pty, tab);
    pty.expect_shown("[1 Tools]").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn keys_change_the_sizes_of_panes() {
    let room = room(3);
    let mut pty = console(&room, 30, 100);
    let (column, _) = place(&pty, "╭ tool00");
    let border = |columns: usize| format!(" Tools 3 {}╮╭ tool00", "─".repeat(columns));
    pty.type_keys("<").expect_shown(&border(column - 17));
    pty.type_keys("=").expect_shown(&border(column - 12)).type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn without_colours_nothing_is_coloured_and_the_choice_is_seen() {
    let (room, _fixture) = room_with_server();
    std::fs::write(room.path("config/toolhost/console.yaml"), "theme: light\n").unwrap();
    room.file("tools.yaml", "tools: [{ name: one, command: [echo, hi] }]\n");
    room.toolhost(["trust", "--yes"]).go().exits(0);
    let variables = [("NO_COLOR".to_owned(), "1".to_owned())];
    let mut pty = Pty::console_with(&room, &variables, 30, 100);
    pty.expect_shown("● 1 server")
        .expect_shown("srv-echo")
        .type_keys("2")
        .expect_shown("[2 Servers]");
    let (rows, columns) = pty.terminal().size();
    let (rows, columns) = (rows.get(), columns.get());
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let cells: Vec<&vt100::Cell> =
        cells.filter_map(|(row, column)| pty.terminal().cell(row, column)).collect();
    let is_plain = |cell: &&vt100::Cell| {
        cell.fgcolor() == vt100::Color::Default && cell.bgcolor() == vt100::Color::Default
    };
    assert!(cells.iter().all(is_plain));
    assert!(cells.iter().any(|cell| cell.inverse()) && cells.iter().any(|cell| cell.bold()));
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}
