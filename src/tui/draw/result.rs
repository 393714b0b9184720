//! What a call of the chosen tool gave, or is doing.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::words::Words;
use super::{pane, running};
use crate::tui::state::{Face, Node, Pane, State, Tree};
use crate::tui::theme::Meaning;
use crate::util::units::show_duration;

pub(super) fn draw(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let focused = state.shell.focus == Pane::Result;
    let viewer = &state.tools.viewer;
    let tool = state.tools.subject();
    if let Some(document) = tool.and_then(|tool| viewer.rehearsal_of(tool)) {
        let title = "Dry run  nothing was sent";
        let inner = pane::open(frame, words, area, title, focused);
        return pane::document(frame, words, inner, document, viewer.scroll);
    }
    let Some((tool, call)) =
        tool.and_then(|tool| Some((tool, viewer.call(tool, &state.shell.calls)?)))
    else {
        let inner = pane::open(frame, words, area, "Result", focused);
        return frame.render_widget(words.line(Meaning::Dim, "not called yet"), inner);
    };
    let mut title = match &call.outcome {
        None => format!("Result  {}", running::word(words, state, call)),
        Some(Ok(outcome)) => {
            let word = if outcome.fault().is_some() { "failed" } else { "ok" };
            format!("Result  {word} {}", show_duration(outcome.metadata.duration))
        }
        Some(Err(_)) => "Result  not called".to_owned(),
    };
    let all = state.shell.calls.all_of(tool).count();
    if all > 1 {
        title = format!("{title}  {} of {all}", all - viewer.back);
    }
    // What went wrong has only one face.
    let has_faces = matches!(&call.outcome, Some(Ok(outcome)) if outcome.result.is_ok());
    if viewer.face != Face::Text && has_faces {
        title = format!("{title}  {}", viewer.face.title());
    }
    let inner = pane::open(frame, words, area, &title, focused);
    if call.outcome.is_none() {
        let lines = running::lines(words, state, call, usize::from(inner.width));
        pane::scrolled(frame, words, inner, &lines, viewer.scroll);
    } else if viewer.tree.is_empty() {
        pane::document(frame, words, inner, &viewer.text, viewer.scroll);
    } else {
        tree(frame, words, &viewer.tree, focused, inner);
    }
}

fn tree(frame: &mut Frame<'_>, words: &Words<'_>, tree: &Tree, focused: bool, area: Rect) {
    let height = usize::from(area.height);
    let first = tree.list.first(height, tree.len());
    for (line, node) in tree.from(first).take(height).enumerate() {
        let y = area.y + u16::try_from(line).unwrap_or(0);
        let chosen = first + line == tree.list.chosen();
        let place = Rect { y, height: 1, ..area };
        frame.render_widget(leaf(words, node, chosen, focused), place);
    }
    if tree.is_cut() && first + height >= tree.len() && !area.is_empty() {
        let place = Rect { y: area.bottom() - 1, height: 1, ..area };
        let said = "the rest is not shown; E saves all of it";
        frame.render_widget(words.line(Meaning::Doubt, said).right_aligned(), place);
    }
}

fn leaf(words: &Words<'_>, node: &Node, chosen: bool, focused: bool) -> Line<'static> {
    let fold = match (node.is_branch, node.is_open) {
        (true, true) => "- ",
        (true, false) => "+ ",
        (false, _) => "  ",
    };
    let indent = "  ".repeat(node.depth.min(40));
    let colon = if node.key.is_empty() { "" } else { ": " };
    let (key, value) = match (chosen, focused) {
        (true, true) => (Meaning::Chosen, Meaning::Chosen),
        (true, false) => (Meaning::Marked, Meaning::Marked),
        (false, _) => (Meaning::Name, Meaning::Plain),
    };
    Line::from(vec![
        words.span(Meaning::Dim, format!("{indent}{fold}")),
        words.span(key, format!("{}{colon}", node.key)),
        words.span(if node.is_branch && !chosen { Meaning::Dim } else { value }, &node.text),
    ])
}
