//! What a pane says that has nothing to show yet.

use crate::tui::prelude::*;
/// What is missing, and the keys with which it comes, in the upper third of a pane of this height.
pub fn lines(
    styler: Styler,
    missing: &str,
    keys: &[(&str, &str)],
    height: u16,
) -> Vec<Line<'static>> {
    let height = usize::from(height);
    let needed = keys.len() + 2;
    let above = if height > needed { (height - needed) / 3 } else { 0 };
    let widest = keys.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    let key = |(key, does): &(&str, &str)| {
        Line::from(vec![
            styler.span(Role::Key, format!("  {key:>widest$}")),
            styler.span(Role::Dim, format!("   {does}")),
        ])
    };
    let gap = Line::default();
    let mut lines = vec![gap.clone(); above];
    lines.push(styler.line(Role::Plain, format!("  {missing}")));
    if height > needed {
        lines.push(gap);
    }
    lines.extend(keys.iter().map(key));
    lines
}
