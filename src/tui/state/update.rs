//! What becomes of the state when something happens.

use std::time::Duration;

use super::{FieldState, Form, Line, Message, Overlay, Pane, PendingApproval, State, View};
use crate::catalogue::Catalogue as Listed;
use crate::host::approval::Approval;
use crate::model::{Reply, ServerState};
use crate::tui::event::{Effect, Event, Input};
use crate::tui::keys::{self, Action, Key, When};

/// How many lines a page has.
const PAGE: isize = 10;
/// Keys that come sooner than this after a question were typed for something else.
const TYPED_AHEAD: Duration = Duration::from_millis(300);

impl State {
    /// Takes in what happened; says what is to be done.
    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Input(Input::Key(key)) => return self.pressed(key),
            Event::Input(Input::Paste(text)) => {
                if let Some(line) = self.line() {
                    line.insert(&text);
                    self.rewritten();
                }
            }
            Event::Input(Input::Resize { width, height }) => self.size = (width, height),
            Event::Tick(now) => {
                self.now = now;
                if let Some(pending) = self.approvals.front_mut() {
                    pending.since.get_or_insert(now);
                }
            }
            Event::Host(event) => return self.heard(event),
            Event::Listed { servers, catalogue } => return self.listed(&servers, *catalogue),
            Event::Servers(statuses) => {
                let new: Vec<String> = statuses
                    .iter()
                    .filter(|status| !self.servers.rows.iter().any(|row| row.name == status.name))
                    .map(|status| status.name.clone())
                    .collect();
                self.servers.take(statuses);
                return new.into_iter().map(Effect::ListServer).collect();
            }
            Event::Ended { run, outcome } => {
                self.calls.end(run, *outcome);
                self.result_scroll = 0;
                return vec![Effect::LookAtServers];
            }
            Event::Approval { id, asked } => {
                let since = None;
                self.approvals.push_back(PendingApproval { id, asked: *asked, since, scroll: 0 });
            }
            Event::Question { id, question } => {
                self.say_bad(format!(
                    "{} asks: {} (declined: questions are answered with 'toolhost call')",
                    question.server,
                    question.ask.words()
                ));
                return vec![Effect::Reply(id, std::sync::Arc::new(Reply::Nobody))];
            }
            Event::Withdrawn(id) => self.approvals.retain(|pending| pending.id != id),
            Event::Signal(signal) => return vec![Effect::Quit(Some(signal))],
        }
        Vec::new()
    }

    /// Whether the approval that is shown has been there for long enough to be answered.
    pub fn takes_an_answer(&self) -> bool {
        let since = self.approvals.front().and_then(|pending| pending.since);
        since.is_some_and(|since| since + TYPED_AHEAD <= self.now)
    }

    fn heard(&mut self, event: crate::model::Event) -> Vec<Effect> {
        use crate::model::Event as Told;
        self.servers.hear(&event);
        match event {
            Told::Server { state: ServerState::Ready | ServerState::Failed(_), .. } => {
                return vec![Effect::LookAtServers];
            }
            Told::Notice { origin, text } => self.say(format!("{origin}: {text}")),
            Told::Warning { text } => self.say_bad(text),
            _ => {}
        }
        Vec::new()
    }

    fn listed(&mut self, servers: &[String], catalogue: Listed) -> Vec<Effect> {
        for listing in &catalogue.servers {
            match &listing.fault {
                Some(fault) => {
                    self.servers.faults.insert(listing.name.clone(), fault.clone());
                }
                None => {
                    self.servers.faults.remove(&listing.name);
                }
            }
        }
        self.catalogue.take(servers, catalogue);
        vec![Effect::LookAtServers]
    }

    fn pressed(&mut self, key: Key) -> Vec<Effect> {
        let typed_ahead = !self.approvals.is_empty() && !self.takes_an_answer();
        if typed_ahead && key != Key::Ctrl('c') {
            return Vec::new();
        }
        // Leaving is possible from everywhere.
        if key == Key::Ctrl('c') {
            return self.act(Action::Cancel);
        }
        let mut places = self.places();
        if matches!(key, Key::Ctrl(_)) {
            // No letter is written with it, so what holds anywhere holds here too.
            places.push(When::Anywhere);
        }
        if let Some(action) = keys::action(key, &places) {
            return self.act(action);
        }
        if let Some(line) = self.line() {
            if written(line, key) {
                self.rewritten();
            }
            return Vec::new();
        }
        Vec::new()
    }

    /// The line that is being written.
    fn line(&mut self) -> Option<&mut Line> {
        if !self.approvals.is_empty() || self.overlay.is_some() {
            return None;
        }
        if self.catalogue.is_filtering {
            return Some(&mut self.catalogue.filter);
        }
        match &mut self.form {
            Some(form) if self.focus == Pane::Detail => form.field().map(super::Field::write),
            _ => None,
        }
    }

    fn rewritten(&mut self) {
        if self.catalogue.is_filtering {
            self.catalogue.refilter();
            self.detail_scroll = 0;
        }
        if let Some(form) = &mut self.form {
            form.problem = None;
        }
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        self.message = None;
        match action {
            Action::Show(view) => self.show(view),
            Action::NextPane => self.step_pane(1),
            Action::PreviousPane => self.step_pane(-1),
            Action::Zoom => self.is_zoomed = !self.is_zoomed,
            Action::Filter => {
                self.focus = Pane::Catalogue;
                self.catalogue.is_filtering = true;
            }
            Action::Sort => {
                self.catalogue.sort_next();
                self.say(format!("sorted by {}", self.catalogue.sort.title()));
            }
            Action::Down => self.scroll(1),
            Action::Up => self.scroll(-1),
            Action::PageDown => self.scroll(PAGE),
            Action::PageUp => self.scroll(-PAGE),
            Action::Top => self.scroll(isize::MIN),
            Action::Bottom => self.scroll(isize::MAX),
            Action::Fill => self.fill(),
            Action::Run => return self.run(),
            Action::PreviousField => self.on_form(|form| form.step(-1)),
            Action::NextField => self.on_form(|form| form.step(1)),
            Action::PreviousChoice => self.choose(-1),
            Action::NextChoice => self.choose(1),
            Action::Unset => self.set(FieldState::Unset),
            Action::Null => self.set(FieldState::Null),
            Action::Copy => return self.copied(),
            Action::CopyCommand => return self.command_copied(),
            Action::Refresh => return self.refresh(),
            Action::Yes => return self.decide(Approval::Granted),
            Action::No => return self.decide(Approval::Refused),
            Action::Help => self.overlay = Some(Overlay::Help(0)),
            Action::Back => self.back(),
            Action::Cancel => return self.cancel(),
            Action::Redraw => return vec![Effect::Redraw],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Quit => return self.leave(),
        }
        Vec::new()
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.focus = view.panes()[0];
        self.is_zoomed = false;
    }

    fn step_pane(&mut self, by: isize) {
        let panes = self.view.panes();
        let at = panes.iter().position(|pane| *pane == self.focus).unwrap_or(0);
        let length = isize::try_from(panes.len()).unwrap_or(1);
        let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(length);
        self.focus =
            usize::try_from(next).ok().and_then(|n| panes.get(n)).copied().unwrap_or(panes[0]);
    }

    fn scroll(&mut self, by: isize) {
        if let Some(pending) = self.approvals.front_mut() {
            pending.scroll = pending.scroll.saturating_add_signed(by);
            return;
        }
        if let Some(Overlay::Help(line)) = &mut self.overlay {
            *line = line.saturating_add_signed(by);
            return;
        }
        match self.focus {
            Pane::Catalogue => {
                let length = self.catalogue.found().len();
                self.catalogue.list.step(by, length);
                (self.detail_scroll, self.result_scroll) = (0, 0);
            }
            Pane::Servers => {
                let length = self.servers.rows.len();
                self.servers.list.step(by, length);
                self.detail_scroll = 0;
            }
            Pane::Detail | Pane::Health => {
                self.detail_scroll = self.detail_scroll.saturating_add_signed(by);
            }
            Pane::Result => self.result_scroll = self.result_scroll.saturating_add_signed(by),
        }
    }

    fn fill(&mut self) {
        let Some(row) = self.catalogue.chosen() else { return };
        if let Some(fault) = &row.tool.unavailable {
            let why = format!("{} cannot be called: {}", row.name, fault.message());
            return self.say_bad(why);
        }
        self.form = Some(Form::of(&row.tool, self.calls.arguments_of(&row.name)));
        self.focus = Pane::Detail;
    }

    fn run(&mut self) -> Vec<Effect> {
        let Some(form) = &mut self.form else { return Vec::new() };
        if let Some(missing) = form.missing() {
            form.at = missing;
            form.problem =
                form.fields.get(missing).map(|field| format!("{} is required", field.key));
            return Vec::new();
        }
        let (tool, arguments) = (form.tool.clone(), form.arguments());
        let run = self.calls.begin(tool.clone(), arguments.clone());
        self.result_scroll = 0;
        self.focus = Pane::Detail;
        vec![Effect::Call { run, tool, arguments }]
    }

    fn on_form(&mut self, change: impl FnOnce(&mut Form)) {
        if let Some(form) = &mut self.form {
            change(form);
        }
    }

    fn choose(&mut self, by: isize) {
        let Some(field) = self.form.as_mut().and_then(Form::field) else { return };
        if !field.choices.is_empty() {
            field.choose(by);
        } else if by < 0 {
            field.line.left();
        } else {
            field.line.right();
        }
    }

    fn set(&mut self, state: FieldState) {
        if let Some(field) = self.form.as_mut().and_then(Form::field) {
            field.state = state;
            field.line.clear();
        }
    }

    fn copied(&mut self) -> Vec<Effect> {
        let Some(row) = self.catalogue.chosen() else { return Vec::new() };
        let result = self.calls.newest_of(&row.name).and_then(|call| call.outcome.as_ref());
        let text = match (self.focus, result) {
            (Pane::Result, Some(Ok(outcome))) => match &outcome.result {
                Ok(result) => result.structured.as_ref().unwrap_or(&result.output).to_string(),
                Err(fault) => fault.to_string(),
            },
            (Pane::Result, Some(Err(fault))) => fault.to_string(),
            _ => row.name.clone(),
        };
        self.say("copied");
        vec![Effect::Copy(text)]
    }

    fn command_copied(&mut self) -> Vec<Effect> {
        let Some(row) = self.catalogue.chosen() else { return Vec::new() };
        let line = match self.calls.arguments_of(&row.name) {
            Some(arguments) => {
                let json = serde_json::Value::Object(arguments.clone()).to_string();
                format!("toolhost call {} '{}'", row.name, json.replace('\'', r"'\''"))
            }
            None => crate::host::example::command_line(&row.tool),
        };
        self.say("copied as a command");
        vec![Effect::Copy(line)]
    }

    fn refresh(&mut self) -> Vec<Effect> {
        match self.view {
            View::Tools => {
                let servers = self.servers.rows.iter();
                let ask = servers.map(|row| Effect::ListServer(row.name.clone()));
                [Effect::ListDeclared].into_iter().chain(ask).collect()
            }
            View::Servers => match self.servers.chosen().map(|row| row.name.clone()) {
                Some(name) => {
                    self.say(format!("asking {name}"));
                    vec![Effect::CheckServer(name.clone()), Effect::ListServer(name)]
                }
                None => Vec::new(),
            },
        }
    }

    fn decide(&mut self, approval: Approval) -> Vec<Effect> {
        if self.approvals.is_empty() {
            let leaves =
                self.overlay.take() == Some(Overlay::Leave) && approval == Approval::Granted;
            return leaves.then_some(Effect::Quit(None)).into_iter().collect();
        }
        let pending = self.approvals.pop_front();
        pending.map(|pending| Effect::Approve(pending.id, approval)).into_iter().collect()
    }

    fn back(&mut self) {
        if self.overlay.take().is_some() {
            return;
        }
        if self.catalogue.is_filtering {
            self.catalogue.is_filtering = false;
        } else if self.form.take().is_some() {
            self.focus = Pane::Catalogue;
        } else if self.is_zoomed {
            self.is_zoomed = false;
        } else if !self.catalogue.filter.text().is_empty() {
            self.catalogue.filter.clear();
            self.catalogue.refilter();
        }
    }

    fn cancel(&mut self) -> Vec<Effect> {
        if !self.approvals.is_empty() {
            return self.decide(Approval::Refused);
        }
        let newest = self.calls.running().next().map(|call| (call.run, call.tool.clone()));
        match newest {
            Some((run, tool)) if self.overlay != Some(Overlay::Leave) => {
                self.overlay = None;
                self.say(format!("{tool} is told to stop"));
                vec![Effect::Cancel(run)]
            }
            _ => vec![Effect::Quit(None)],
        }
    }

    fn leave(&mut self) -> Vec<Effect> {
        if self.calls.running().next().is_some() {
            self.overlay = Some(Overlay::Leave);
            return Vec::new();
        }
        vec![Effect::Quit(None)]
    }

    fn say(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), is_bad: false });
    }

    fn say_bad(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), is_bad: true });
    }
}

/// Whether a key wrote something.
fn written(line: &mut Line, key: Key) -> bool {
    match key {
        Key::Char(c) => line.insert(c.encode_utf8(&mut [0; 4])),
        Key::Backspace => line.backspace(),
        Key::Ctrl('w') => line.erase_word(),
        Key::Ctrl('u') => line.clear(),
        Key::Left => line.left(),
        Key::Right => line.right(),
        Key::Home | Key::Ctrl('a') => line.home(),
        Key::End | Key::Ctrl('e') => line.end(),
        _ => return false,
    }
    true
}
