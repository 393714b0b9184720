//! Text that is typed into a field: its lines, its completion.

use unicode_segmentation::UnicodeSegmentation as _;

use super::SchemaForm;
use crate::host::form::{FieldInput, FieldKind, FormNode, RowPart};
use crate::tui::keys::KeyContext;
use crate::tui::state::TextArea;

impl SchemaForm {
    pub fn key_contexts(&self) -> Vec<KeyContext> {
        if self.json.is_some() {
            return vec![KeyContext::MultilineText];
        }
        let Some(node) = self.node().filter(|_| self.part() == RowPart::Field) else {
            return [self.last(), vec![KeyContext::FormItems, KeyContext::Form]].concat();
        };
        let own: &[KeyContext] = match node.field.kind {
            _ if self.takes_lines() => &[KeyContext::FormLines],
            FieldKind::Choice(_) => &[KeyContext::FormChoice],
            FieldKind::Boolean | FieldKind::Variants(_) => {
                &[KeyContext::FormChoice, KeyContext::FormItems]
            }
            _ if node.is_text_input() => &[],
            _ => &[KeyContext::FormItems],
        };
        [self.last(), own.to_vec(), vec![KeyContext::Form]].concat()
    }

    fn last(&self) -> Vec<KeyContext> {
        let is_last = self.at + 1 >= self.fields.len();
        is_last.then_some(KeyContext::FormLast).into_iter().collect()
    }

    /// Whether the chosen field takes text of several lines.
    pub(super) fn takes_lines(&self) -> bool {
        let takes = |node: &FormNode| {
            matches!(node.input, FieldInput::Json(_))
                || matches!(node.field.kind, FieldKind::Text | FieldKind::Any | FieldKind::Json)
        };
        self.part() == RowPart::Field && self.node().is_some_and(takes)
    }

    /// Starts editing the value of the chosen row.
    pub(super) fn read_draft(&mut self) {
        if !self.is_writing() {
            self.draft = self.node().map(fresh_draft).unwrap_or_default();
            self.draft_path = self.fields.get(self.at).map(|row| row.node_path.clone());
        }
    }

    /// Selects the choice that starts with what was typed, or with its last letter.
    pub(super) fn pick_typed(&mut self) {
        let typed = self.draft.text();
        let last = typed.graphemes(true).next_back().unwrap_or_default().to_owned();
        let Some(node) = self.node_mut() else { return };
        if node.pick_choice(&typed) {
            return self.changed();
        }
        let picked = node.pick_choice(&last);
        self.draft = TextArea::at_end(if picked { &last } else { "" });
        if picked {
            self.changed();
        }
    }

    /// Begins a new line in the field; whether it takes several.
    pub(super) fn break_line(&mut self) -> bool {
        let Some(text) = self.text() else { return false };
        text.break_line();
        self.on_text_changed();
        true
    }

    pub(super) fn step_line(&mut self, by: isize) {
        let row = self.written().map(|text| (text.row(), text.lines().len()));
        match row {
            Some((row, lines)) if row.checked_add_signed(by).is_some_and(|row| row < lines) => {
                self.draft.step(by);
            }
            _ => self.step(by),
        }
    }

    /// Selects the only choice that starts with what was typed.
    pub(super) fn complete_choice(&mut self) {
        let Some(node) = self.node_mut() else { return };
        let (FieldInput::Text(text), FieldKind::Choice(choices)) = (&node.input, &node.field.kind)
        else {
            return;
        };
        let begun = text.to_lowercase();
        let mut found =
            (0..choices.len()).filter(|at| choices[*at].title.to_lowercase().starts_with(&begun));
        if let (false, Some(only), None) = (begun.is_empty(), found.next(), found.next()) {
            node.input = FieldInput::Choice(only);
            self.draft_path = None;
            self.changed();
        }
    }
}

/// The text of a field as it is when its first key is typed. A choice or a whole date is selected:
/// typing replaces it.
pub fn fresh_draft(node: &FormNode) -> TextArea {
    let text = node.text().unwrap_or_default();
    let mut draft = TextArea::at_end(text);
    let is_choice = matches!(node.input, FieldInput::Choice(_));
    if is_choice || (is_date(node) && text.parse::<jiff::civil::Date>().is_ok()) {
        draft.line().select();
    }
    draft
}

/// Whether a field takes a calendar day.
pub fn is_date(node: &FormNode) -> bool {
    node.field.kind == FieldKind::Text && node.field.schema.text("format") == Some("date")
}
