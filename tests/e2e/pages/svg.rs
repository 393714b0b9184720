//! A screen as a picture: scalable, in its colours, and with its text in it.

use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

/// The size of a character cell, in units of the picture.
const WIDTH: usize = 8;
const HEIGHT: usize = 16;
/// The space around the screen.
const MARGIN: usize = 12;

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d5d8df";
/// The sixteen colours of a terminal.
const PALETTE: [&str; 16] = [
    "#16181d", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf",
    "#7f8590", "#ff7b86", "#b5e890", "#ffd68a", "#7cc4ff", "#dd94f0", "#6fd3df", "#ffffff",
];

/// How a run of characters looks.
#[derive(PartialEq, Clone)]
struct Look {
    fill: String,
    behind: Option<String>,
    is_bold: bool,
    is_dim: bool,
    is_underlined: bool,
}

fn colour(colour: Color, plain: &str) -> String {
    match colour {
        Color::Default => plain.to_owned(),
        Color::Idx(index) => PALETTE
            .get(usize::from(index))
            .map_or_else(|| extended(index), |named| (*named).to_owned()),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}

/// A colour of the cube or of the greys behind the sixteen.
fn extended(index: u8) -> String {
    if index >= 232 {
        let grey = 8 + (index - 232) * 10;
        return format!("#{grey:02x}{grey:02x}{grey:02x}");
    }
    let level = |part: u8| if part == 0 { 0 } else { 55 + part * 40 };
    let index = index - 16;
    let (red, green, blue) = (level(index / 36), level(index / 6 % 6), level(index % 6));
    format!("#{red:02x}{green:02x}{blue:02x}")
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let (mut fill, mut behind) =
            (colour(cell.fgcolor(), FOREGROUND), colour(cell.bgcolor(), BACKGROUND));
        if cell.inverse() {
            std::mem::swap(&mut fill, &mut behind);
        }
        Self {
            fill,
            behind: (behind != BACKGROUND).then_some(behind),
            is_bold: cell.bold(),
            is_dim: cell.dim(),
            is_underlined: cell.underline(),
        }
    }
}

/// The screen as an SVG document.
pub fn picture(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (usize::from(rows.get()), usize::from(columns.get()));
    let (width, height) = (columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace\" \
         font-size=\"13.3\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for row in 0..rows {
        line(screen, row, columns, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

/// One row: what lies behind the text, then the text, a span for each look.
fn line(screen: &Screen, row: usize, columns: usize, svg: &mut String) {
    let at = |column: usize| {
        screen.cell(u16::try_from(row).unwrap(), u16::try_from(column).unwrap()).unwrap()
    };
    let (top, base) = (MARGIN + row * HEIGHT, MARGIN + row * HEIGHT + 12);
    let mut spans = String::new();
    let mut column = 0;
    while column < columns {
        let look = Look::of(at(column));
        let count = (column..columns).take_while(|next| Look::of(at(*next)) == look).count();
        let text: String = (column..column + count)
            .map(|cell| if at(cell).has_contents() { at(cell).contents() } else { " " })
            .collect();
        let (left, wide) = (MARGIN + column * WIDTH, count * WIDTH);
        if let Some(behind) = &look.behind {
            let size = format!("width=\"{wide}\" height=\"{HEIGHT}\"");
            writeln!(svg, "<rect x=\"{left}\" y=\"{top}\" {size} fill=\"{behind}\"/>").unwrap();
        }
        let weight = if look.is_bold { " font-weight=\"bold\"" } else { "" };
        let opacity = if look.is_dim { " opacity=\"0.65\"" } else { "" };
        let under = if look.is_underlined { " text-decoration=\"underline\"" } else { "" };
        let (fill, text) = (&look.fill, escaped(&text));
        write!(
            spans,
            "<tspan x=\"{left}\" textLength=\"{wide}\" fill=\"{fill}\"{weight}{opacity}{under}>{text}</tspan>"
        )
        .unwrap();
        column += count;
    }
    writeln!(svg, "<text y=\"{base}\">{spans}</text>").unwrap();
}

/// A browser would put several plain spaces together.
const SPACE: &str = "\u{a0}";

fn escaped(text: &str) -> String {
    text.replace(' ', SPACE).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The text of such a picture, a line for each row.
pub fn text(svg: &str) -> String {
    let tags = regex::Regex::new("<[^>]*>").unwrap();
    let rows = svg.lines().filter(|line| line.starts_with("<text"));
    let rows = rows.map(|row| {
        let row = tags.replace_all(row, "");
        row.replace(SPACE, " ").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    });
    rows.collect::<Vec<_>>().join("\n")
}
