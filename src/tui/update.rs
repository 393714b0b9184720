//! Updating the state with an event.

use crate::catalogue::Catalogue;
use crate::model::{ErrorKind, ListOwner, ServerState, ServerStatus};
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::external_editor::{EditorDraft, EditorError};
use crate::tui::keys::KeyPress;
use crate::tui::layout::Divider;
use crate::tui::prelude::*;
use crate::tui::tasks::Outcome;
use crate::tui::views::form::{self, SchemaForm};
use crate::tui::views::overlays;
use crate::tui::views::overlays::problems::ConfigurationProblems;
use crate::tui::views::tools::detail;
use crate::tui::widgets::input::TextArea;
use crate::tui::widgets::list::action_step;
use crate::tui::widgets::reading::Readiness;

/// How far a key moves the line between two panes, in percent of the view.
const PANE_STEP: i16 = 5;

impl AppState {
    /// Takes in what happened; says what is to be done.
    pub fn update(&mut self, event: AppEvent) -> Effects {
        let effects = self.dispatch(event);
        let mut effects = self.resolve_navigation(effects);
        effects.extend(self.tools.refresh(&self.context));
        self.measure_form();
        effects
    }

    /// Finds out how many rows the form of a tool needs, before places are given out.
    fn measure_form(&mut self) {
        let styler = Styler::new(self.context.appearance.theme());
        let place = self.context.area_of(Pane::Detail);
        let rows = |(form, area): (&SchemaForm, Rect)| {
            let inside = self.context.inside(area);
            let tool = self.tools.catalogue.chosen().map(|row| &row.tool);
            let about =
                tool.map_or(0, |tool| detail::about(styler, self, tool, inside.width).len());
            let frame = area.height - inside.height;
            form::draw::rows_needed(styler, form, inside.width)
                .saturating_add(u16::try_from(about).unwrap_or(0) + frame)
        };
        self.context.form_rows = self.tools.shown_form().zip(place).map(rows);
    }

    fn dispatch(&mut self, event: AppEvent) -> Effects {
        match event {
            AppEvent::Input(UserInput::Key(key)) => return self.pressed(key),
            AppEvent::Input(UserInput::Paste(text)) => {
                if let Some(lines) = self.text() {
                    lines.paste(&text);
                    return self.text_changed();
                }
                if let Some(line) = self.line() {
                    line.insert(&text);
                    return self.text_changed();
                }
            }
            AppEvent::Input(UserInput::Resize { width, height }) => {
                self.context.size = (width, height);
            }
            AppEvent::Input(UserInput::Click { x, y }) => return self.clicked(x, y),
            AppEvent::Input(UserInput::Wheel { x, y, by }) => return self.wheeled(x, y, by),
            AppEvent::Tick(now) => {
                self.context.now = now;
                self.context.calls.tick(now);
                let is_due = self.has_stale_figures && !self.stats.is_querying;
                let stale = is_due.then(|| self.refresh_figures());
                self.inbox.on_tick(now);
                let is_approving = !self.inbox.approvals.is_empty();
                let is_asking = is_approving || self.trust.window.is_some();
                if let Some(window) = &mut self.trust.window {
                    window.text.tick(now, is_approving);
                }
                if let Some(window) = &mut self.pin_window {
                    let is_seen = self.context.overlay == Some(Overlay::Pin) && !is_asking;
                    window.text.tick(now, !is_seen);
                }
                let (view, context) = self.active_view();
                let mut effects = view.tick(context);
                effects.extend(stale.into_iter().flatten());
                return effects;
            }
            AppEvent::Host(event) => return self.handle_host_event(&event),
            AppEvent::Traffic(seen) => {
                let call = seen.traffic.call.as_ref();
                let client = call.and_then(|call| self.others.client_of(call)).map(str::to_owned);
                self.trace.push_traffic(*seen, client);
            }
            AppEvent::EventsDropped(lost) => self.context.lost = lost,
            AppEvent::ToolsListed { servers, catalogue } => {
                self.context.end_progress();
                return self.listed(&servers, *catalogue);
            }
            AppEvent::AllServers(statuses) => {
                for removed in self.servers.retain_servers(&statuses) {
                    self.tools.catalogue.set_tools(&[removed], Catalogue::default());
                }
                return self.update_servers(statuses);
            }
            AppEvent::ServerStatuses(statuses) => return self.update_servers(statuses),
            AppEvent::CallStarted { run, call } => self.context.calls.set_host_id(run, call),
            AppEvent::CallFinished { run, outcome } => {
                let error = outcome.as_ref().as_ref().map_or_else(Some, |done| done.error());
                if error.is_some_and(|error| error.kind() == ErrorKind::Usage)
                    && let Some(check) = self.tools.refused(run, &mut self.context)
                {
                    return vec![check];
                }
                let mut effects = error.map(|error| self.trust.failed(error)).unwrap_or_default();
                self.context.end_progress();
                self.context.calls.end(run, *outcome);
                effects.push(AppEffect::RefreshServers);
                effects.extend(self.refresh_figures());
                return effects;
            }
            AppEvent::Approval { id, prompt } => {
                return self.inbox.approval(id, *prompt, &mut self.context);
            }
            AppEvent::Question { id, question } => {
                let is_typing = self.line().is_some();
                self.inbox.push_question(id, *question, is_typing, &mut self.context);
            }
            AppEvent::QuestionWithdrawn(id) => self.inbox.withdraw(id, &mut self.context),
            AppEvent::ArgumentsChecked { schema, arguments, problems } => {
                let context = &mut self.context;
                let answered = self.inbox.checked(&schema, &arguments, &problems, context);
                if let Some(effects) = answered {
                    return effects;
                }
                if let Some(form) = self.form() {
                    form.checked(&schema, &arguments, &problems);
                }
            }
            AppEvent::Edited(outcome) => self.apply_editor_result(outcome),
            AppEvent::Outcome(Outcome(change)) => return change(self),
            AppEvent::Signal(signal) => return vec![AppEffect::Quit(Some(signal))],
        }
        Vec::new()
    }

    /// Reads what the records say by now: the columns of the tools, the statistics, the history.
    fn refresh_figures(&mut self) -> Effects {
        self.has_stale_figures = false;
        let mut effects = self.stats.refresh();
        effects.extend(self.history.on_call_recorded(self.context.view));
        effects
    }

    /// Everything is passed on to the host with this process id; `None`: the console is its own host.
    pub fn attached(&mut self, pid: Option<u32>) -> Effects {
        self.others.clear();
        self.context.attached_host = pid;
        if let Some(pid) = pid {
            self.context.show_status(format!("attached to the background host (pid {pid})"));
        }
        Vec::new()
    }

    pub fn detached(&mut self, pid: u32) -> Effects {
        self.others.clear();
        self.context.attached_host = None;
        let key = self.context.keys.key_of(Action::Attach, &[KeyContext::Servers]);
        let way = key.map(|key| format!("; {key} in Servers attaches again"));
        self.context.show_error(format!(
            "the background host (pid {pid}) ended; servers now start here{}",
            way.unwrap_or_default()
        ));
        vec![AppEffect::RefreshServers]
    }

    pub fn update_servers(&mut self, statuses: Vec<ServerStatus>) -> Effects {
        let is_new =
            |status: &&ServerStatus| !self.servers.rows.iter().any(|row| row.name == status.name);
        let new: Vec<String> = statuses.iter().filter(is_new).map(|s| s.name.clone()).collect();
        self.servers.update_statuses(statuses, self.context.now);
        let names = self.servers.rows.iter().map(|row| row.name.clone()).collect();
        self.tools.catalogue.set_servers(names);
        new.into_iter().map(AppEffect::ListServer).collect()
    }

    fn handle_host_event(&mut self, event: &crate::model::HostEvent) -> Effects {
        use crate::model::HostEvent;
        self.servers.handle_host_event(event);
        self.context.calls.handle_host_event(event);
        self.others.handle_host_event(event, &self.context.calls, self.context.now);
        let client = match event {
            HostEvent::CallStarted { call_id, .. } | HostEvent::CallFinished { call_id, .. } => {
                self.others.client_of(call_id).map(str::to_owned)
            }
            _ => None,
        };
        self.live.handle_host_event(event, client.as_deref(), self.context.now);
        // Read again at the next tick: there may be thousands of them in a second.
        self.has_stale_figures |=
            client.is_some() && matches!(event, HostEvent::CallFinished { .. });
        if let HostEvent::CallStarted { tool, .. } | HostEvent::CallFinished { tool, .. } = event {
            let row = self.tools.catalogue.find_by_name(tool);
            if let Some(row) = row.filter(|row| row.server().is_none()) {
                self.trace.call_changed(event, row.tool.kind, client, self.context.now);
            }
        }
        let effects = self.offerings.handle_host_event(event, self.context.view);
        if !effects.is_empty() {
            return effects;
        }
        match event {
            HostEvent::ServerStateChanged { state: ServerState::Closed, .. } => {
                self.context.end_progress();
            }
            HostEvent::ServerStateChanged { state: ServerState::Ready, .. } => {
                self.context.end_progress();
                return vec![AppEffect::RefreshServers];
            }
            HostEvent::ServerStateChanged { state: ServerState::Failed(error), .. } => {
                let mut effects = self.trust.failed(error);
                effects.push(AppEffect::RefreshServers);
                return effects;
            }
            HostEvent::ListChanged { owner: ListOwner::Program, .. } => {
                return vec![AppEffect::ListDeclared, AppEffect::RefreshServers];
            }
            HostEvent::Notice { origin, text } => {
                self.context.show_status(format!("{origin}: {text}"));
            }
            HostEvent::Warning { text } => self.context.show_error(text),
            // A server's log messages crossed its wire, so the trace has them already.
            HostEvent::Log { origin, level, text, .. } if !self.servers.has_server(origin) => {
                self.trace.logged(origin, self.context.now, &level.0, text);
            }
            _ => {}
        }
        Vec::new()
    }

    fn listed(&mut self, servers: &[String], catalogue: Catalogue) -> Effects {
        let errors = catalogue.servers.iter().filter_map(|listing| listing.error.as_ref());
        let mut effects: Effects = errors.flat_map(|error| self.trust.failed(error)).collect();
        self.servers.listed(servers, &catalogue);
        self.tools.catalogue.set_tools(servers, catalogue);
        effects.push(AppEffect::RefreshServers);
        effects
    }

    fn pressed(&mut self, key: KeyPress) -> Effects {
        let typed_ahead =
            self.inbox.approval_readiness(self.context.now) == Some(Readiness::TooSoon);
        if typed_ahead && key != KeyPress::Ctrl('c') {
            return Vec::new();
        }
        // Leaving is possible from everywhere.
        if key == KeyPress::Ctrl('c') {
            return self.act(Action::Cancel);
        }
        let mut places = self.key_contexts();
        if matches!(key, KeyPress::Ctrl(_) | KeyPress::F(_)) {
            // No letter is written with it, so what holds anywhere holds here too.
            places.push(KeyContext::Anywhere);
        }
        if let Some(action) = self.context.keys.action(key, &places) {
            return self.act(action);
        }
        let is_written = match self.text() {
            Some(text) => written_in_text(text, key),
            None => self.line().is_some_and(|line| written(line, key)),
        };
        if is_written {
            return self.text_changed();
        }
        Vec::new()
    }

    fn line(&mut self) -> Option<&mut LineInput> {
        if !self.inbox.approvals.is_empty() || self.trust.window.is_some() {
            return None;
        }
        if self.context.overlay.is_some() {
            return match &mut self.context.overlay {
                Some(Overlay::Help(window)) if window.filter.is_typed => {
                    Some(&mut window.filter.line)
                }
                Some(Overlay::Palette(palette)) => Some(&mut palette.line),
                Some(Overlay::SaveCall(window)) => Some(&mut window.name),
                _ => None,
            };
        }
        let focus = self.context.focus;
        let (view, _) = self.active_view();
        if view.filter().is_some_and(|filter| filter.is_typed) {
            return view.filter_mut().map(|filter| &mut filter.line);
        }
        view.line(focus)
    }

    fn text(&mut self) -> Option<&mut TextArea> {
        if self.has_overlay() {
            return None;
        }
        let focus = self.context.focus;
        self.active_view().0.text(focus)
    }

    fn form(&mut self) -> Option<&mut SchemaForm> {
        let focus = self.context.focus;
        self.active_view().0.form_mut(focus)
    }

    fn apply_editor_result(&mut self, outcome: Result<String, EditorError>) {
        if let Some(form) = self.form() {
            return form.apply_editor_result(outcome);
        }
        match outcome {
            Err(error) => self.context.show_error(error.to_string()),
            Ok(written) => match self.text() {
                // Editors end the last line.
                Some(text) => *text = TextArea::of(written.strip_suffix('\n').unwrap_or(&written)),
                None => self.context.show_error("the question is gone; the text was not used"),
            },
        }
    }

    fn text_changed(&mut self) -> Effects {
        match &mut self.context.overlay {
            Some(Overlay::Help(window)) => {
                window.position.reset();
                return Vec::new();
            }
            Some(Overlay::Palette(palette)) => {
                palette.search(overlays::palette::search);
                return Vec::new();
            }
            Some(Overlay::SaveCall(window)) => {
                window.error = None;
                return Vec::new();
            }
            _ => {}
        }
        let (view, context) = self.active_view();
        view.on_text_changed(context)
    }

    pub fn act(&mut self, action: Action) -> Effects {
        self.context.message = None;
        if self.has_overlay() {
            return self.act_above(action);
        }
        if matches!(action, Action::Validate | Action::Editor)
            && let Some(form) = self.form()
        {
            let mut effects: Effects = form.action_effect(action).into_iter().collect();
            if action == Action::Validate {
                // A view may have more to check than the form knows of.
                let (view, context) = self.active_view();
                effects.extend(view.act(action, context).unwrap_or_default());
            }
            return effects;
        }
        if action == Action::Editor
            && let Some(text) = self.text()
        {
            return vec![AppEffect::OpenEditor(EditorDraft {
                name: "answer.txt",
                text: text.text(),
            })];
        }
        // Of zoom and what is in the pane, zoom is the nearer level; typing is nearer still.
        if action == Action::Back && self.context.is_zoomed && !self.is_filtering() {
            self.context.is_zoomed = false;
            return Vec::new();
        }
        let (view, context) = self.active_view();
        let first = context.view.panes()[0];
        if let Some(filter) = view.filter_mut().filter(|filter| filter.is_typed) {
            match action {
                Action::Open => filter.is_typed = false,
                Action::Back => {
                    filter.set("");
                    return view.on_text_changed(context);
                }
                _ => {}
            }
        }
        let has_filter = view.filter().is_some_and(|filter| !filter.text().is_empty());
        match (view.act(action, context), action, view.filter_mut()) {
            (Some(effects), ..) => effects,
            (None, Action::Filter, Some(filter)) => {
                filter.start();
                context.focus = first;
                Vec::new()
            }
            (None, Action::Back, _) if context.focus != first => {
                context.focus = first;
                Vec::new()
            }
            (None, Action::Back, Some(filter)) if has_filter => {
                filter.set("");
                view.on_text_changed(context)
            }
            (None, ..) => self.act_anywhere(action),
        }
    }

    /// Whether the text of a filter or a search is typed.
    pub fn is_filtering(&self) -> bool {
        self.view_key_contexts().first() == Some(&KeyContext::Text)
    }

    /// Whether something lies over the view and has the keys.
    pub fn has_overlay(&self) -> bool {
        self.context.overlay.is_some()
            || !self.inbox.approvals.is_empty()
            || self.trust.window.is_some()
    }

    fn act_above(&mut self, action: Action) -> Effects {
        let approves = !self.inbox.approvals.is_empty();
        if let Some(effects) = self.inbox.decide(action, &mut self.context) {
            return effects;
        }
        if !approves && self.trust.window.is_some() {
            return self.handle_trust_action(action);
        }
        if !approves && let Some(effects) = self.act_in_window(action) {
            return effects;
        }
        match action {
            Action::Yes => {
                let leaves = self.context.overlay.take() == Some(Overlay::ConfirmQuit);
                leaves.then_some(AppEffect::Quit(None)).into_iter().collect()
            }
            Action::Back => {
                self.context.overlay = None;
                Vec::new()
            }
            other => self.act_anywhere(other),
        }
    }

    pub fn act_anywhere(&mut self, action: Action) -> Effects {
        if self.open_window(action) {
            return Vec::new();
        }
        match action {
            Action::Show(view) => return self.show(view),
            Action::NextPane => self.context.step_pane(1),
            Action::PreviousPane => self.context.step_pane(-1),
            Action::NarrowPane => self.context.step_divider(Divider::Columns, -PANE_STEP),
            Action::WidenPane => self.context.step_divider(Divider::Columns, PANE_STEP),
            Action::ShrinkPane => self.context.step_divider(Divider::Rows, -PANE_STEP),
            Action::GrowPane => self.context.step_divider(Divider::Rows, PANE_STEP),
            Action::ResetPanes => self.context.reset_dividers(),
            Action::Zoom => self.context.is_zoomed = !self.context.is_zoomed,
            Action::Refresh => {
                let servers = self.servers.rows.iter();
                let ask = servers.map(|row| AppEffect::ListServer(row.name.clone()));
                return [AppEffect::ListDeclared].into_iter().chain(ask).collect();
            }
            Action::Back => {}
            Action::Trust => self.trust.open(&mut self.context),
            Action::Attach => return self.trust.attach(&mut self.context),
            Action::Reload => return self.reload_configuration(),
            Action::Cancel => return self.cancel(),
            Action::Redraw => return vec![AppEffect::Redraw],
            Action::Suspend => return vec![AppEffect::Suspend],
            Action::Quit => return self.request_quit(),
            other => {
                if let Some(by) = action_step(other, self.page_height()) {
                    return self.scroll(by);
                }
            }
        }
        Vec::new()
    }

    fn reload_configuration(&mut self) -> Effects {
        let runs = self.context.calls.running().next().is_some() || self.bench.is_running();
        self.trust.reload(!runs, &mut self.context)
    }

    /// How many lines a page has of what scrolls: of the window that lies over the view, else of the
    /// focused pane.
    fn page_height(&self) -> usize {
        let position = match (self.inbox.approvals.front(), &self.trust.window) {
            (Some(pending), _) => Some(pending.text().position()),
            (None, Some(window)) => Some(window.text.text.position()),
            (None, None) => match &self.context.overlay {
                Some(Overlay::Help(window)) => Some(&window.position),
                Some(Overlay::Problems) => Some(self.configuration_problems.text.position()),
                Some(Overlay::Pin) => {
                    self.pin_window.as_ref().map(|window| window.text.text.position())
                }
                _ => None,
            },
        };
        position.map_or_else(|| self.context.page_height(), ScrollPosition::height)
    }

    pub fn scroll(&mut self, by: isize) -> Effects {
        if let Some(pending) = self.inbox.approvals.front_mut() {
            pending.scroll(by);
        } else if let Some(window) = &mut self.trust.window {
            window.text.scroll(by);
        } else if !self.scroll_window(by) {
            let (view, context) = self.active_view();
            view.scroll(context.focus, by);
            return view.on_scrolled(context);
        }
        Vec::new()
    }

    fn cancel(&mut self) -> Effects {
        let newest = self.context.calls.running().next().map(|call| (call.run, call.tool.clone()));
        match newest {
            Some((run, tool)) if self.context.overlay != Some(Overlay::ConfirmQuit) => {
                self.context.overlay = None;
                self.context.show_status(format!("cancelling {tool}…"));
                vec![AppEffect::Cancel(run)]
            }
            _ if self.bench.is_stoppable() => self.bench.stop(&mut self.context),
            // Pressed again it is meant; but what is being filled in is not lost that way.
            _ if self.context.overlay == Some(Overlay::ConfirmQuit) && self.form().is_none() => {
                vec![AppEffect::Quit(None)]
            }
            _ => {
                self.context.overlay = Some(Overlay::ConfirmQuit);
                Vec::new()
            }
        }
    }

    pub fn request_quit(&mut self) -> Effects {
        if self.context.calls.running().next().is_some() || self.bench.is_running() {
            self.context.overlay = Some(Overlay::ConfirmQuit);
            return Vec::new();
        }
        vec![AppEffect::Quit(None)]
    }
}

fn written_in_text(text: &mut TextArea, key: KeyPress) -> bool {
    match key {
        KeyPress::Backspace => text.erase(),
        KeyPress::Left => text.left(),
        KeyPress::Right => text.right(),
        other => return written(text.line(), other),
    }
    true
}

fn written(line: &mut LineInput, key: KeyPress) -> bool {
    match key {
        KeyPress::Char(c) => line.insert(c.encode_utf8(&mut [0; 4])),
        KeyPress::Backspace => line.backspace(),
        KeyPress::Ctrl('w') => line.erase_word(),
        KeyPress::Ctrl('u') => line.clear(),
        KeyPress::Left => line.left(),
        KeyPress::Right => line.right(),
        KeyPress::Home | KeyPress::Ctrl('a') => line.home(),
        KeyPress::End | KeyPress::Ctrl('e') => line.end(),
        _ => return false,
    }
    true
}

impl AppState {
    /// After a switch everything that the old host told is asked for anew.
    pub fn host_switched(&mut self) -> Effects {
        let mut effects = self.trust.on_host_switched(&mut self.context);
        self.configuration_problems = ConfigurationProblems::of(self.trust.diagnostics());
        self.servers.clear();
        self.tools.catalogue.forget_servers();
        effects.extend([AppEffect::ListDeclared, AppEffect::RefreshServers]);
        effects.extend(self.offerings.forget_servers());
        effects.extend(self.stats.refresh());
        effects
    }

    pub fn handle_trust_action(&mut self, action: Action) -> Effects {
        if let Some(effects) = self.trust.decide(action, &mut self.context) {
            return effects;
        }
        match action {
            Action::Quit => {
                // Whether to leave although calls run must be seen.
                self.trust.window = None;
                self.request_quit()
            }
            Action::Down
            | Action::Up
            | Action::PageDown
            | Action::PageUp
            | Action::Top
            | Action::Bottom
            | Action::Cancel
            | Action::Redraw
            | Action::Suspend => self.act_anywhere(action),
            _ => Vec::new(),
        }
    }
}
