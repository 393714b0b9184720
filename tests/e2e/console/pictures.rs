//! Pictures within results.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};

use crate::support::{Pty, Sandbox};

const F5: &str = "\u{1b}[15~";
const DOWN: &str = "\u{1b}[B";

/// A project with a picture that is red above and blue below, and one that is broken.
fn room_with_pictures(settings: &str) -> Sandbox {
    let room = Sandbox::new();
    let colour = |y| if y < 32 { Rgb([255_u8, 0, 0]) } else { Rgb([0, 0, 255]) };
    let mut bytes = Vec::new();
    let picture = RgbImage::from_fn(64, 64, |_, y| colour(y));
    picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
    std::fs::write(room.path("work/flag.png"), &bytes).unwrap();
    std::fs::write(room.path("work/cut.png"), &bytes[..60]).unwrap();
    room.file(
        "tools.yaml",
        "tools:\n  - { name: project, type: files, scope: PROJECT_ROOT, access: read }\n",
    );
    room.file("../config/toolhost/console.yaml", settings);
    room
}

fn look_at(pty: &mut Pty, file: &str) {
    pty.expect_shown("project-read").type_keys("/projectread").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  project-read").type_keys(file);
    pty.type_keys(&DOWN.repeat(4)).type_keys("base64").expect_shown("encoding     base64");
    pty.type_keys(F5);
    pty.expect_shown(" OK ");
}

fn leave(mut pty: Pty) {
    pty.type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
}

/// The colours of the half blocks on the screen, from the top.
fn colours(pty: &Pty) -> Vec<vt100::Color> {
    let screen = pty.terminal();
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let cells = places.filter_map(|(row, column)| screen.cell(row, column));
    let mut found: Vec<vt100::Color> =
        cells.filter(|cell| cell.contents() == "▀").map(vt100::Cell::fgcolor).collect();
    found.dedup();
    found
}

#[test]
fn a_picture_is_shown_in_the_cells_of_any_terminal_wide_or_narrow() {
    for (rows, columns) in [(45, 160), (24, 80)] {
        let room = room_with_pictures("");
        let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], rows, columns);
        look_at(&mut pty, "flag.png");
        if columns == 80 {
            pty.type_keys("\u{1b}").type_keys("\t\t").type_keys("z");
        }
        pty.expect_shown("[image image/png 64x64").expect_shown("▀▀▀▀");
        // Without COLORTERM in 256 colours: those of the cube for red and for blue.
        let shown = colours(&pty);
        let (first, last) = (shown.first().copied(), shown.last().copied());
        assert_eq!((first, last), (Some(vt100::Color::Idx(196)), Some(vt100::Color::Idx(21))));
        leave(pty);
    }
}

#[test]
fn a_broken_picture_is_told_in_a_line_with_its_type_and_size() {
    let room = room_with_pictures("");
    let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], 45, 160);
    look_at(&mut pty, "cut.png");
    pty.expect_shown("[image image/png 60 B, not shown: broken; E saves it]");
    leave(pty);
}

#[test]
fn a_person_can_want_no_pictures() {
    let room = room_with_pictures("image:\n  inline: never\n");
    let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], 45, 160);
    look_at(&mut pty, "flag.png");
    pty.expect_shown("[image/png ").expect_shown("E saves it]").expect_shown("call 0");
    assert!(!pty.shown().contains('▀') && !pty.shown().contains("64x64"), "{}", pty.shown());
    leave(pty);
}
