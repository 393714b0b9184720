//! What becomes of the state when something happens.

use super::{Form, Line, Overlay, State, Text};
use crate::catalogue::Catalogue as Listed;
use crate::model::ServerState;
use crate::tui::event::{Draft, Effect, Event, Input};
use crate::tui::keys::{Action, Key, When};

/// How many lines a page has.
const PAGE: isize = 10;

impl State {
    /// Takes in what happened; says what is to be done.
    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.take(event);
        let effects = self.settle(effects);
        self.tools.refresh(&self.shell);
        effects
    }

    fn take(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Input(Input::Key(key)) => return self.pressed(key),
            Event::Input(Input::Paste(text)) => {
                if let Some(lines) = self.text() {
                    lines.paste(&text);
                    return self.rewritten();
                }
                if let Some(line) = self.line() {
                    line.insert(&text);
                    return self.rewritten();
                }
            }
            Event::Input(Input::Resize { width, height }) => self.shell.size = (width, height),
            Event::Input(Input::Click { x, y }) => self.clicked(x, y),
            Event::Input(Input::Wheel { x, y, by }) => self.wheeled(x, y, by),
            Event::Tick(now) => {
                self.shell.now = now;
                self.shell.calls.tick(now);
                self.inbox.now(now);
                self.trust.tick(now, !self.inbox.approvals.is_empty());
                let (stage, shell) = self.stage();
                return stage.tick(shell);
            }
            Event::Host(event) => return self.heard(&event),
            Event::Traffic(seen) => self.trace.take(*seen),
            Event::Lost(lost) => self.shell.lost = lost,
            Event::Trust(news) => return self.trust_news(news),
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
            Event::Began { run, call } => self.shell.calls.began(run, call),
            Event::Ended { run, outcome } => {
                let fault = outcome.as_ref().as_ref().map_or_else(Some, |done| done.fault());
                let mut effects = fault.map(|fault| self.trust.failed(fault)).unwrap_or_default();
                self.shell.calls.end(run, *outcome);
                effects.push(Effect::LookAtServers);
                effects.extend(self.stats.look());
                effects.extend(self.history.grown(self.shell.view));
                return effects;
            }
            Event::Approval { id, asked } => {
                return self.inbox.approval(id, *asked, &mut self.shell);
            }
            Event::Question { id, question } => {
                self.inbox.question(id, *question, &mut self.shell);
            }
            Event::Withdrawn(id) => self.inbox.withdrawn(id, &mut self.shell),
            Event::Checked { schema, arguments, problems } => {
                let shell = &mut self.shell;
                let answered = self.inbox.checked(&schema, &arguments, &problems, shell);
                if let Some(effects) = answered {
                    return effects;
                }
                if let Some(form) = self.form() {
                    form.checked(&schema, &arguments, &problems);
                }
            }
            Event::Edited(outcome) => self.edited(outcome),
            Event::Stats(news) => return self.stats.take(news),
            Event::Tools(news) => {
                self.shell.message = None;
                self.tools.hear(*news);
            }
            Event::Memory(news) => return self.recalled(*news),
            Event::History(news) => return self.history.hear(news, &mut self.shell),
            Event::Offers(news) => return self.offers.hear(news, &mut self.shell),
            Event::Bench(news) => return self.bench.take(news, &mut self.shell),
            Event::Said { text, is_bad: false } => self.shell.say(text),
            Event::Said { text, is_bad: true } => self.shell.say_bad(text),
            Event::Signal(signal) => return vec![Effect::Quit(Some(signal))],
        }
        Vec::new()
    }

    fn heard(&mut self, event: &crate::model::Event) -> Vec<Effect> {
        use crate::model::Event as Told;
        self.servers.hear(event);
        self.shell.calls.hear(event);
        let effects = self.offers.told(event, self.shell.view);
        if !effects.is_empty() {
            return effects;
        }
        match event {
            Told::Server { state: ServerState::Ready, .. } => return vec![Effect::LookAtServers],
            Told::Server { state: ServerState::Failed(fault), .. } => {
                let mut effects = self.trust.failed(fault);
                effects.push(Effect::LookAtServers);
                return effects;
            }
            Told::Notice { origin, text } => self.shell.say(format!("{origin}: {text}")),
            Told::Warning { text } => self.shell.say_bad(text),
            // What a server logs crossed its wire, and stands in the trace as that.
            Told::Log { origin, level, text } if !self.servers.is_one(origin) => {
                self.trace.logged(origin, self.shell.now, &level.0, text);
            }
            _ => {}
        }
        Vec::new()
    }

    fn listed(&mut self, servers: &[String], catalogue: Listed) -> Vec<Effect> {
        let faults = catalogue.servers.iter().filter_map(|listing| listing.fault.as_ref());
        let mut effects: Vec<Effect> = faults.flat_map(|fault| self.trust.failed(fault)).collect();
        self.servers.listed(servers, &catalogue);
        self.tools.catalogue.take(servers, catalogue);
        effects.push(Effect::LookAtServers);
        effects
    }

    fn pressed(&mut self, key: Key) -> Vec<Effect> {
        let typed_ahead =
            !self.inbox.approvals.is_empty() && !self.inbox.takes_an_answer(self.shell.now);
        if typed_ahead && key != Key::Ctrl('c') {
            return Vec::new();
        }
        // Leaving is possible from everywhere.
        if key == Key::Ctrl('c') {
            return self.act(Action::Cancel);
        }
        self.keep.is_touched = true;
        if let Some(effects) = self.pressed_in_window(key) {
            return effects;
        }
        let mut places = self.places();
        if matches!(key, Key::Ctrl(_)) {
            // No letter is written with it, so what holds anywhere holds here too.
            places.push(When::Anywhere);
        }
        if let Some(action) = self.shell.keys.action(key, &places) {
            return self.act(action);
        }
        if let Some(line) = self.line()
            && written(line, key)
        {
            return self.rewritten();
        }
        Vec::new()
    }

    /// The line that is being written.
    fn line(&mut self) -> Option<&mut Line> {
        if !self.inbox.approvals.is_empty() || self.trust.window.is_some() {
            return None;
        }
        if self.shell.overlay.is_some() {
            return match &mut self.shell.overlay {
                Some(Overlay::Palette(palette)) => Some(&mut palette.line),
                _ => None,
            };
        }
        let focus = self.shell.focus;
        self.stage().0.line(focus)
    }

    /// The text of several lines that is being written.
    fn text(&mut self) -> Option<&mut Text> {
        if self.is_covered() {
            return None;
        }
        let focus = self.shell.focus;
        self.stage().0.text(focus)
    }

    /// The form that is being filled in.
    fn form(&mut self) -> Option<&mut Form> {
        let focus = self.shell.focus;
        self.stage().0.form_mut(focus)
    }

    /// What was written in the person's own editor.
    fn edited(&mut self, outcome: Result<String, String>) {
        if let Some(form) = self.form() {
            return form.edited(outcome);
        }
        match outcome {
            Err(why) => self.shell.say_bad(why),
            Ok(written) => match self.text() {
                Some(text) => *text = Text::of(&written),
                None => self.shell.say_bad("what was edited is not asked for any more"),
            },
        }
    }

    fn rewritten(&mut self) -> Vec<Effect> {
        if let Some(Overlay::Palette(palette)) = &mut self.shell.overlay {
            palette.refilter();
            return Vec::new();
        }
        let (stage, shell) = self.stage();
        stage.rewritten(shell)
    }

    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        self.shell.message = None;
        if self.is_covered() {
            return self.act_above(action);
        }
        if matches!(action, Action::Validate | Action::Editor)
            && let Some(form) = self.form()
        {
            let mut effects: Vec<Effect> = form.wish(action).into_iter().collect();
            if action == Action::Validate {
                // A view may have more to check than the form knows of.
                let (stage, shell) = self.stage();
                effects.extend(stage.act(action, shell).unwrap_or_default());
            }
            return effects;
        }
        if action == Action::Editor
            && let Some(text) = self.text()
        {
            return vec![Effect::Edit(Draft { name: "answer.txt", text: text.text() })];
        }
        let (stage, shell) = self.stage();
        match stage.act(action, shell) {
            Some(effects) => effects,
            None => self.act_anywhere(action),
        }
    }

    /// Whether something lies over the view and has the keys.
    pub(super) fn is_covered(&self) -> bool {
        self.shell.overlay.is_some()
            || !self.inbox.approvals.is_empty()
            || self.trust.window.is_some()
    }

    fn act_above(&mut self, action: Action) -> Vec<Effect> {
        let approves = !self.inbox.approvals.is_empty();
        if let Some(effects) = self.inbox.decide(action, &mut self.shell) {
            return effects;
        }
        if !approves && self.trust.window.is_some() {
            return self.act_on_trust(action);
        }
        if !approves && let Some(effects) = self.act_in_window(action) {
            return effects;
        }
        match action {
            Action::Yes => {
                let leaves = self.shell.overlay.take() == Some(Overlay::Leave);
                leaves.then_some(Effect::Quit(None)).into_iter().collect()
            }
            Action::Back => {
                self.shell.overlay = None;
                Vec::new()
            }
            other => self.act_anywhere(other),
        }
    }

    pub(super) fn act_anywhere(&mut self, action: Action) -> Vec<Effect> {
        if self.open_window(action) {
            return Vec::new();
        }
        match action {
            Action::Show(view) => return self.show(view),
            Action::NextPane => self.shell.step_pane(1),
            Action::PreviousPane => self.shell.step_pane(-1),
            Action::Zoom => self.shell.is_zoomed = !self.shell.is_zoomed,
            Action::Down => self.scroll(1),
            Action::Up => self.scroll(-1),
            Action::PageDown => self.scroll(PAGE),
            Action::PageUp => self.scroll(-PAGE),
            Action::Top => self.scroll(isize::MIN),
            Action::Bottom => self.scroll(isize::MAX),
            Action::Refresh => {
                let servers = self.servers.rows.iter();
                let ask = servers.map(|row| Effect::ListServer(row.name.clone()));
                return [Effect::ListDeclared].into_iter().chain(ask).collect();
            }
            Action::Back => self.shell.is_zoomed = false,
            Action::Trust => self.trust.open(&mut self.shell),
            Action::Cancel => return self.cancel(),
            Action::Redraw => return vec![Effect::Redraw],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Quit => return self.leave(),
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn scroll(&mut self, by: isize) {
        if let Some(pending) = self.inbox.approvals.front_mut() {
            pending.scroll = pending.scroll.saturating_add_signed(by);
            return;
        }
        if let Some(window) = &mut self.trust.window {
            return window.scroll(by);
        }
        if self.scroll_window(by) {
            return;
        }
        let (stage, shell) = self.stage();
        stage.scroll(shell.focus, by);
    }

    fn cancel(&mut self) -> Vec<Effect> {
        let newest = self.shell.calls.running().next().map(|call| (call.run, call.tool.clone()));
        match newest {
            Some((run, tool)) if self.shell.overlay != Some(Overlay::Leave) => {
                self.shell.overlay = None;
                self.shell.say(format!("{tool} is told to stop"));
                vec![Effect::Cancel(run)]
            }
            _ if self.bench.is_stoppable() => self.bench.stop(&mut self.shell),
            _ => vec![Effect::Quit(None)],
        }
    }

    pub(super) fn leave(&mut self) -> Vec<Effect> {
        if self.shell.calls.running().next().is_some() || self.bench.is_running() {
            self.shell.overlay = Some(Overlay::Leave);
            return Vec::new();
        }
        vec![Effect::Quit(None)]
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
