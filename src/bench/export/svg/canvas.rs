//! SVG elements, written as text.

use std::fmt::Write as _;

use crate::util::text::safe_line;

/// A picture that is being drawn.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    out: String,
}

impl Canvas {
    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
        self.out.push('\n');
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _infallible = writeln!(
            self.out,
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            short(from.0),
            short(from.1),
            short(to.0),
            short(to.1)
        );
    }

    /// A line through points, or an area when it is closed; nothing for no points.
    pub(super) fn path(&mut self, points: &[(f64, f64)], closed: bool, class: &str) {
        if points.is_empty() {
            return;
        }
        let mut data = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            let command = if at == 0 { 'M' } else { 'L' };
            let _infallible = write!(data, "{command}{} {}", short(*x), short(*y));
        }
        if closed {
            data.push('Z');
        }
        let _infallible = writeln!(self.out, r#"<path class="{class}" d="{data}"/>"#);
    }

    /// A rectangle; nothing when it has no area.
    pub(super) fn rectangle(&mut self, at: (f64, f64), size: (f64, f64), class: &str) {
        if size.0 <= 0.0 || size.1 <= 0.0 {
            return;
        }
        let _infallible = writeln!(
            self.out,
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"/>"#,
            short(at.0),
            short(at.1),
            short(size.0),
            short(size.1)
        );
    }

    /// Untrusted text; it is escaped.
    pub(super) fn text(&mut self, at: (f64, f64), class: &str, text: &str) {
        let _infallible = writeln!(
            self.out,
            r#"<text class="{class}" x="{}" y="{}">{}</text>"#,
            short(at.0),
            short(at.1),
            escaped(text)
        );
    }
}

pub(in crate::bench::export) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in safe_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What XML does not allow at all.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A tenth of a pixel is fine enough.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut canvas = Canvas::default();
        canvas.text((1.0, 2.55), "x", "<script>\u{1b}[31m\u{202e}&\"'");
        let drawn = canvas.finish();
        assert!(drawn.starts_with(r#"<text class="x" x="1" y="2."#), "{drawn}");
        assert!(
            !drawn.contains("<script") && !drawn.contains('\u{1b}') && !drawn.contains('\u{202e}')
        );
    }

    #[test]
    fn what_has_no_extent_is_not_drawn() {
        let mut canvas = Canvas::default();
        canvas.path(&[], true, "x");
        canvas.rectangle((0.0, 0.0), (10.0, 0.0), "x");
        assert_eq!(canvas.finish(), "");
    }
}
