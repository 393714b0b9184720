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

/// Screens of one size, one after the other, as an SVG document that moves: each is shown for so many
/// milliseconds. Who wants nothing to move sees the last one.
pub fn film(frames: &[(Screen, u32)]) -> String {
    let (rows, columns) = frames[0].0.size();
    let (rows, columns) = (usize::from(rows.get()), usize::from(columns.get()));
    let (width, height) = (columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let whole: u32 = frames.iter().map(|(_, lasts)| lasts).sum();
    // What a row shows, from which frame, and up to which.
    let mut shown: Vec<(String, usize, usize)> = Vec::new();
    for row in 0..rows {
        for (at, (screen, _)) in frames.iter().enumerate() {
            let mut text = String::new();
            line(screen, row, columns, &mut text);
            match shown.last_mut() {
                Some((same, _, end)) if *end == at && at > 0 && *same == text => *end = at + 1,
                _ => shown.push((text, at, at + 1)),
            }
        }
    }
    let mut times: Vec<(usize, usize)> = shown.iter().map(|(_, from, to)| (*from, *to)).collect();
    times.sort_unstable();
    times.dedup();
    let mut style = String::new();
    for (from, to) in times.into_iter().filter(|time| *time != (0, frames.len())) {
        let at = |frame: usize| {
            let before: u32 = frames[..frame].iter().map(|(_, lasts)| lasts).sum();
            f64::from(before) * 100.0 / f64::from(whole)
        };
        let (from_time, to_time) = (at(from), at(to));
        let hidden = if to == frames.len() { "" } else { "opacity:0;" };
        let begin = if from == 0 { String::new() } else { "0%{opacity:0}".to_owned() };
        let end =
            if to == frames.len() { String::new() } else { format!("{to_time:.2}%{{opacity:0}}") };
        writeln!(
            style,
            "@keyframes k{from}-{to}{{{begin}{from_time:.2}%{{opacity:1}}{end}}}\n\
             .k{from}-{to}{{{hidden}animation:k{from}-{to} {whole}ms step-end infinite}}"
        )
        .unwrap();
    }
    if !style.is_empty() {
        style = format!(
            "<style>\n{style}@media (prefers-reduced-motion){{g{{animation:none!important}}}}\n</style>\n"
        );
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace\" \
         font-size=\"13.3\">\n{style}\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (text, from, to) in shown {
        writeln!(svg, "<g class=\"k{from}-{to}\">\n{text}</g>").unwrap();
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

/// The text of each frame of such a picture, a line for each row.
pub fn texts(svg: &str) -> Vec<String> {
    let tags = regex::Regex::new("<[^>]*>").unwrap();
    let group = regex::Regex::new(r#"^<g class="k(\d+)-(\d+)">$"#).unwrap();
    let mut frames: Vec<String> = Vec::new();
    let mut time = 0..0;
    for line in svg.lines() {
        if let Some(shown) = group.captures(line) {
            time = shown[1].parse().unwrap()..shown[2].parse().unwrap();
            frames.resize(frames.len().max(time.end), String::new());
        } else if line.starts_with("<text") {
            let row = tags.replace_all(line, "").replace(SPACE, " ");
            let row = row.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            for frame in &mut frames[time.clone()] {
                frame.push_str(&row);
                frame.push('\n');
            }
        }
    }
    frames
}
