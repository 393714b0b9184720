//! Key actions of a form.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::host::form::{FieldInput, FieldKind, FormNode, RowPart};
use crate::tui::prelude::*;
use crate::tui::views::form::{SECRET_NOT_SHOWN, object};

impl SchemaForm {
    /// Performs an action on the fields; `false` when it is not about them.
    pub fn act(&mut self, action: Action) -> bool {
        if action == Action::SwitchForm {
            self.switch();
            return true;
        }
        if let Some(text) = &mut self.json {
            let is_done = text.act(action);
            if matches!(action, Action::Add | Action::Remove) {
                self.changed();
            }
            return is_done;
        }
        match action {
            Action::PreviousField => self.step(-1),
            Action::NextField => self.step(1),
            Action::NewLine => return self.break_line(),
            Action::Up => self.step_line(-1),
            Action::Down => self.step_line(1),
            Action::PreviousChoice => self.change_choice(-1),
            Action::NextChoice => self.change_choice(1),
            Action::Unset => self.change(|node, part| match part {
                RowPart::Choice(at) => untick(node, at),
                RowPart::Field => node.clear(),
            }),
            Action::Null => self.change(|node, part| {
                if part == RowPart::Field && !node.field.key.is_empty() {
                    node.clear();
                    node.input = FieldInput::Null;
                }
            }),
            Action::Add => self.add(),
            Action::Remove => self.remove(),
            _ => return false,
        }
        true
    }

    fn switch(&mut self) {
        match self.json.take() {
            None if self.root.holds_secret() => self.problem = Some(SECRET_NOT_SHOWN.to_owned()),
            None => {
                self.write_json();
                self.changed();
            }
            Some(text) => match object(text.text()) {
                Ok(object) => {
                    self.fill(&object);
                    (self.at, self.written) = (0, None);
                    self.changed();
                }
                Err(why) => {
                    self.problem = Some(why.message().to_owned());
                    self.json = Some(text);
                }
            },
        }
    }

    /// The next choice, or the one before; unfolds or folds; a letter on or back.
    fn change_choice(&mut self, by: isize) {
        let Some(node) = self.node() else { return };
        if self.part() != RowPart::Field {
            return self.change(|node, part| {
                if let RowPart::Choice(at) = part {
                    node.toggle_choice(at);
                }
            });
        }
        let is_json = matches!(node.input, FieldInput::Json(_));
        match node.field.kind {
            FieldKind::Object | FieldKind::List | FieldKind::MultiChoice(_) if !is_json => {
                self.change(|node, _| if by > 0 { node.open() } else { node.is_open = false });
            }
            FieldKind::Choice(_)
            | FieldKind::Boolean
            | FieldKind::Constant(_)
            | FieldKind::Variants(_)
                if !is_json =>
            {
                self.change(|node, _| {
                    node.cycle_choice(by);
                });
            }
            _ => {
                let draft = self.draft();
                if by < 0 { draft.left() } else { draft.right() }
            }
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut FormNode, RowPart)) {
        let part = self.part();
        if let Some(node) = self.node_mut() {
            change(node, part);
            self.written = None;
            self.changed();
        }
    }

    fn add(&mut self) {
        let Some(own) = self.fields.get(self.at).map(|row| row.place.index_path.clone()) else {
            return;
        };
        // What is no list and stands in none is filled in itself.
        let (way, at) = self.list_here(false).unwrap_or((own, 0));
        let Some(node) = self.root.at_mut(&way) else { return };
        let is_list = node.field.kind == FieldKind::List;
        if !node.add(at) {
            self.problem = Some("cannot add an item here".to_owned());
            return;
        }
        self.written = None;
        self.changed();
        let item = [way.as_slice(), &[at]].concat();
        if is_list && let Some(at) = self.fields.iter().position(|row| row.place.index_path == item)
        {
            self.go_to(at);
        }
    }

    /// Takes this item away, or the last one of this list.
    fn remove(&mut self) {
        let Some((list, end)) = self.list_here(true) else {
            self.problem = Some("not a list item".to_owned());
            return;
        };
        if let Some(node) = self.root.at_mut(&list) {
            node.remove(end - 1);
        }
        self.written = None;
        self.violations.clear();
        self.changed();
    }

    /// The list that items are added to or removed from here, and the place behind the chosen item, or
    /// the end of the chosen list. One that has to have items is not empty.
    pub(super) fn list_here(&self, has_items: bool) -> Option<(Vec<usize>, usize)> {
        let way = &self.fields.get(self.at)?.place.index_path;
        let node = self.root.at(way)?;
        if node.field.kind == FieldKind::List && !(has_items && node.children.is_empty()) {
            return Some((way.clone(), node.children.len()));
        }
        let (at, list) = way.split_last()?;
        let is_in_list = self.root.at(list)?.field.kind == FieldKind::List;
        is_in_list.then(|| (list.to_vec(), at + 1))
    }
}

fn untick(node: &mut FormNode, at: usize) {
    if matches!(&node.input, FieldInput::Choices(ticked) if ticked.contains(&at)) {
        node.toggle_choice(at);
    }
}

impl SchemaForm {
    /// The text of the chosen field, as it is typed.
    pub(super) fn draft(&mut self) -> &mut TextInput {
        let fresh = self.node().map(|node| self.fresh_draft(node)).unwrap_or_default();
        self.written.get_or_insert(fresh)
    }

    /// The text of a field as it is when its first key is typed. A choice, a whole date or what is
    /// left from an earlier call is selected: typing replaces it.
    pub fn fresh_draft(&self, node: &FormNode) -> TextInput {
        let text = node.text().unwrap_or_default();
        let mut draft = TextInput::of(text);
        let is_choice = matches!(node.input, FieldInput::Choice(_));
        let is_whole_date = || is_date(node) && text.parse::<jiff::civil::Date>().is_ok();
        if is_choice || self.is_remembered && !text.contains('\n') || is_whole_date() {
            draft.select();
        }
        draft
    }

    /// Selects the choice that starts with what was typed, or with its last letter.
    pub(super) fn pick_typed(&mut self, typed: &str) {
        let last = typed.graphemes(true).next_back().unwrap_or_default();
        let Some(node) = self.node_mut() else { return };
        let picked = [typed, last].into_iter().find(|beginning| node.pick_choice(beginning));
        self.written = Some(TextInput::of(picked.unwrap_or_default()));
        if picked.is_some() {
            self.changed();
        }
    }

    /// Begins a new line in the field; whether it takes several.
    fn break_line(&mut self) -> bool {
        let Some(text) = self.text() else { return false };
        text.act(Action::Add);
        self.on_text_changed();
        true
    }

    fn step_line(&mut self, by: isize) {
        if let Some(text) = &mut self.written {
            let row = text.row();
            text.step(by);
            if text.row() != row {
                return;
            }
        }
        self.step(by);
    }
}

pub fn is_date(node: &FormNode) -> bool {
    node.field.kind == FieldKind::Text && node.field.schema.text("format") == Some("date")
}
