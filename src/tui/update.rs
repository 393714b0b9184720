//! Updating the state with an event.

use serde_json::json;

use super::user_program::EditorDraft;
use crate::catalogue::Catalogue;
use crate::model::{ErrorKind, HostEvent, ListKind, ListOwner, ServerState, ServerStatus};
use crate::tui::calls::error_of;
use crate::tui::event::UserInput;
use crate::tui::keys::{self, KeyPress};
use crate::tui::layout::FormRoom;
use crate::tui::prelude::*;
use crate::tui::tasks::Outcome;
use crate::tui::user_program;
use crate::tui::views::inbox::approval::PendingApproval;
use crate::tui::views::overlays::{self, ConfigurationProblems};
use crate::tui::views::result::presentation::result_of;
use crate::tui::views::tools::detail;
use crate::tui::views::{form, servers};
use crate::tui::widgets::list::action_step;
use crate::tui::widgets::reading::Readiness;

impl AppState {
    /// Takes in what happened; says what is to be done.
    pub fn update(&mut self, event: AppEvent) -> Effects {
        self.dispatch(event);
        let effects = std::mem::take(&mut self.context.effects);
        let mut effects = self.resolve_navigation(effects);
        effects.extend(self.tools.refresh(&self.context));
        self.measure_form();
        effects
    }

    /// Finds out how many rows the form of a tool needs, before places are given out.
    fn measure_form(&mut self) {
        let styler = Styler::new(self.context.appearance.theme());
        let place = self.context.area_of(Pane::Detail);
        let room = |(form, area): (&SchemaForm, Rect)| {
            let inside = self.context.inside(area);
            let tool = self.tools.catalogue.chosen().map(|row| &row.tool);
            let about =
                tool.map_or(0, |tool| detail::about(styler, self, tool, inside.width).len());
            let frame = area.height - inside.height;
            let rows = form::draw::rows_needed(styler, form, inside.width);
            FormRoom {
                rows: rows.saturating_add(cells(about) + frame),
                has_result: self.context.calls.newest_of(&form.tool).is_some()
                    || self.tools.viewer.dry_run_of(&form.tool).is_some(),
            }
        };
        self.context.form_room = self.tools.shown_form().zip(place).map(room);
    }

    fn dispatch(&mut self, event: AppEvent) {
        match event {
            AppEvent::Input(UserInput::Key(key)) => self.pressed(key),
            AppEvent::Input(UserInput::Paste(text)) => {
                if let Some(lines) = self.text() {
                    lines.paste(&text);
                } else if let Some(line) = self.line() {
                    line.insert(&text);
                } else {
                    return;
                }
                self.text_changed();
            }
            AppEvent::Input(UserInput::Resize { width, height }) => {
                self.context.size = (width, height);
            }
            AppEvent::Input(UserInput::Click { x, y }) => self.clicked(x, y),
            AppEvent::Input(UserInput::Wheel { x, y, by }) => self.wheeled(x, y, by),
            AppEvent::Tick(now) => self.tick(now),
            AppEvent::Host(event) => self.handle_host_event(&event),
            AppEvent::Traffic(seen) => {
                let call = seen.traffic.call.as_ref();
                let client = call.and_then(|call| self.others.client_of(call)).map(str::to_owned);
                self.trace.push_traffic(*seen, client);
            }
            AppEvent::ToolsListed { servers, catalogue } => {
                self.context.end_progress();
                self.listed(&servers, *catalogue);
            }
            AppEvent::AllServers(statuses) => {
                for removed in self.servers.retain_servers(&statuses) {
                    self.tools.catalogue.set_tools(&[removed], Catalogue::default());
                }
                self.update_servers(statuses);
            }
            AppEvent::ServerStatuses(statuses) => self.update_servers(statuses),
            AppEvent::CallStarted { run, call } => self.context.calls.set_host_id(run, call),
            AppEvent::CallFinished { run, outcome } => {
                let error = error_of(&outcome);
                if error.is_some_and(|error| error.kind() == ErrorKind::Usage) {
                    self.tools.refused(run, &mut self.context);
                }
                if let Some(error) = error {
                    self.trust.failed(error, &mut self.context);
                }
                self.context.end_progress();
                self.context.calls.end(run, *outcome);
                self.context.emit(AppEffect::RefreshServers);
                self.refresh_figures();
            }
            AppEvent::Approval { id, prompt } => {
                self.inbox.approval(id, *prompt, &mut self.context);
            }
            AppEvent::Question { id, question } => {
                let is_typing = self.line().is_some();
                let may_open = !self.has_overlay() && !self.is_filtering();
                let context = &mut self.context;
                self.inbox.push_question(id, *question, is_typing, may_open, context);
            }
            AppEvent::QuestionWithdrawn(id) => self.inbox.withdraw(id, &mut self.context),
            AppEvent::ArgumentsChecked { schema, arguments, problems } => {
                let context = &mut self.context;
                if !self.inbox.checked(&schema, &arguments, &problems, context)
                    && !self.tools.checked(&schema, &arguments, &problems, context)
                    && let Some(form) = self.form()
                {
                    form.checked(&schema, &arguments, &problems);
                }
            }
            AppEvent::Outcome(Outcome(change)) => change(self),
            AppEvent::Signal(signal) => self.context.emit(AppEffect::Quit(Some(signal))),
        }
    }

    fn tick(&mut self, now: Duration) {
        self.context.now = now;
        self.context.calls.tick(now);
        let is_due = self.has_stale_figures && !self.stats.is_querying;
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
        if is_due {
            self.refresh_figures();
        }
        let (view, context) = self.active_view();
        view.tick(context);
    }

    /// Reads what the records say by now: the columns of the tools, the statistics, the history.
    fn refresh_figures(&mut self) {
        self.has_stale_figures = false;
        self.stats.refresh(&mut self.context);
        self.history.on_call_recorded(&mut self.context);
    }

    /// Everything is passed on to the host with this process id; `None`: the console is its own host.
    pub fn attached(&mut self, pid: Option<u32>) {
        self.forget_host();
        self.context.attached_host = pid;
        if let Some(pid) = pid {
            self.context.show_status(format!("attached to the background host (pid {pid})"));
        }
    }

    /// What the host before told is told anew by the next, or does not hold any more.
    fn forget_host(&mut self) {
        self.others.clear();
        self.context.breakpoints.clear();
        self.inbox.forget_held();
    }

    pub fn detached(&mut self, pid: u32) {
        self.forget_host();
        self.context.attached_host = None;
        let key = self.context.keys.key_of(Action::Attach, &[&servers::SERVERS]);
        let way = key.map(|key| format!("; {key} in Servers attaches again")).unwrap_or_default();
        self.context.show_error(format!(
            "the background host (pid {pid}) ended; servers now start here{way}"
        ));
        self.context.emit(AppEffect::RefreshServers);
    }

    pub fn update_servers(&mut self, statuses: Vec<ServerStatus>) {
        for status in statuses.iter().filter(|status| !self.servers.has_server(&status.name)) {
            self.context.emit(AppEffect::ListServer(status.name.clone()));
        }
        self.servers.update_statuses(statuses, self.context.now);
        let names = self.servers.rows.iter().map(|row| row.name.clone()).collect();
        self.tools.catalogue.set_servers(names);
    }

    fn handle_host_event(&mut self, event: &HostEvent) {
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
                self.trace.call_changed(event, &row.tool.kind, client, self.context.now);
            }
        }
        self.offerings.handle_host_event(event, &mut self.context);
        match event {
            HostEvent::ServerStateChanged { state: ServerState::Closed, .. } => {
                self.context.end_progress();
            }
            HostEvent::ServerStateChanged { state: ServerState::Ready, .. } => {
                self.context.end_progress();
                self.context.emit(AppEffect::RefreshServers);
            }
            HostEvent::ServerStateChanged { state: ServerState::Failed(error), .. } => {
                self.trust.failed(error, &mut self.context);
                self.context.emit(AppEffect::RefreshServers);
            }
            HostEvent::ListChanged { owner: ListOwner::Program, .. } => {
                self.context.effects.extend([AppEffect::ListDeclared, AppEffect::RefreshServers]);
            }
            HostEvent::ListChanged { owner: ListOwner::Server(server), list: ListKind::Tools } => {
                match self.relisting.get_mut(server) {
                    Some(again) => *again = true,
                    None => self.relist(server),
                }
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
    }

    fn relist(&mut self, server: &str) {
        self.relisting.insert(server.to_owned(), false);
        self.context.emit(AppEffect::ListServer(server.to_owned()));
    }

    fn listed(&mut self, servers: &[String], catalogue: Catalogue) {
        for server in servers {
            if self.relisting.remove(server) == Some(true) {
                self.relist(server);
            }
        }
        for error in catalogue.servers.iter().filter_map(|listing| listing.error.as_ref()) {
            self.trust.failed(error, &mut self.context);
        }
        self.servers.listed(servers, &catalogue);
        self.tools.catalogue.set_tools(servers, catalogue);
        self.context.emit(AppEffect::RefreshServers);
    }

    fn pressed(&mut self, key: KeyPress) {
        // Leaving is possible from everywhere.
        if key == KeyPress::Ctrl('c') {
            return self.act(Action::Cancel);
        }
        let is_too_soon = |pending: &PendingApproval| {
            pending.request.readiness(self.context.now) == Readiness::TooSoon
        };
        if self.inbox.approvals.front().is_some_and(is_too_soon) {
            return;
        }
        let mut places = self.key_contexts();
        if matches!(key, KeyPress::Ctrl(_) | KeyPress::F(_)) {
            // No letter is written with it, so what holds anywhere holds here too.
            places.push(&ANYWHERE);
        }
        if let Some(action) = self.context.keys.action(key, &places) {
            return self.act(action);
        }
        let is_written = match self.text() {
            Some(text) => written(text, key),
            None => self.line().is_some_and(|line| written(line, key)),
        };
        if is_written {
            self.text_changed();
        }
    }

    fn line(&mut self) -> Option<&mut TextInput> {
        if !self.inbox.approvals.is_empty() || self.trust.window.is_some() {
            return None;
        }
        if self.context.overlay.is_some() {
            return match &mut self.context.overlay {
                Some(Overlay::Help(window)) if window.filter.is_typed => {
                    Some(&mut window.filter.line)
                }
                Some(Overlay::Palette(palette)) => Some(&mut palette.list.filter.line),
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

    fn text(&mut self) -> Option<&mut TextInput> {
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

    pub fn apply_editor_result(&mut self, outcome: Result<String, Error>) {
        if let Some(form) = self.form() {
            return form.apply_editor_result(outcome);
        }
        match outcome {
            Err(error) => self.context.show_error(error.to_string()),
            Ok(written) => match self.text() {
                // Editors end the last line.
                Some(text) => {
                    *text = TextInput::at_start(written.strip_suffix('\n').unwrap_or(&written));
                }
                None => self.context.show_error("the question is gone; the text was not used"),
            },
        }
    }

    fn text_changed(&mut self) {
        match &mut self.context.overlay {
            Some(Overlay::Help(window)) => window.position.reset(),
            Some(Overlay::Palette(palette)) => palette.search(overlays::palette::search),
            Some(Overlay::SaveCall(window)) => window.error = None,
            _ => {
                let (view, context) = self.active_view();
                view.on_text_changed(context);
            }
        }
    }

    pub fn act(&mut self, action: Action) {
        self.context.message = None;
        if self.has_overlay() {
            return self.act_above(action);
        }
        if matches!(action, Action::Validate | Action::Editor)
            && let Some(form) = self.form()
        {
            let effect = form.action_effect(action);
            self.context.effects.extend(effect);
            if action == Action::Validate {
                // A view may have more to check than the form knows of.
                let (view, context) = self.active_view();
                view.act(action, context);
            }
            return;
        }
        if action == Action::Editor
            && let Some(text) = self.text()
        {
            let draft = EditorDraft { name: "answer.txt", text: text.text().to_owned() };
            return self.context.emit(AppEffect::OpenEditor(draft));
        }
        // Of zoom and what is in the pane, zoom is the nearer level; typing is nearer still.
        if action == Action::Back && self.context.is_zoomed && !self.is_filtering() {
            self.context.is_zoomed = false;
            return;
        }
        let (view, context) = self.active_view();
        if let Some(filter) = view.filter_mut().filter(|filter| filter.is_typed) {
            match action {
                Action::Open => {
                    filter.is_typed = false;
                    if view.is_list_empty() {
                        return;
                    }
                }
                Action::Back => {
                    filter.set("");
                    return view.on_text_changed(context);
                }
                _ => {}
            }
        }
        if view.act(action, context) {
            return;
        }
        let first = context.view.panes()[0];
        match (action, view.filter_mut()) {
            (Action::Filter, Some(filter)) => {
                filter.start();
                context.focus = first;
            }
            (Action::Back, _) if context.focus != first => context.focus = first,
            (Action::Back, Some(filter)) if !filter.text().is_empty() => {
                filter.set("");
                view.on_text_changed(context);
            }
            _ => self.act_anywhere(action),
        }
    }

    /// Whether the text of a filter or a search is typed.
    pub fn is_filtering(&self) -> bool {
        self.view_key_contexts().first() == Some(&&keys::TEXT)
    }

    /// Whether something lies over the view and has the keys.
    pub fn has_overlay(&self) -> bool {
        self.context.overlay.is_some()
            || !self.inbox.approvals.is_empty()
            || self.trust.window.is_some()
    }

    fn act_above(&mut self, action: Action) {
        let approves = !self.inbox.approvals.is_empty();
        if self.inbox.decide(action, &mut self.context) {
            return;
        }
        if !approves && self.trust.window.is_some() {
            return self.handle_trust_action(action);
        }
        if !approves && self.act_in_window(action) {
            return;
        }
        match action {
            Action::Yes => {
                if self.context.overlay.take() == Some(Overlay::ConfirmQuit) {
                    self.context.emit(AppEffect::Quit(None));
                }
            }
            Action::Back => self.context.overlay = None,
            other => self.act_anywhere(other),
        }
    }

    pub fn act_anywhere(&mut self, action: Action) {
        if self.open_window(action) {
            return;
        }
        match action {
            Action::Show(view) => self.show(view),
            Action::Program(number) => self.start_program(number),
            Action::NextPane => self.context.step_pane(1),
            Action::PreviousPane => self.context.step_pane(-1),
            Action::NarrowPane | Action::WidenPane | Action::ShrinkPane | Action::GrowPane => {
                self.context.resize_pane(action);
            }
            Action::ResetPanes => drop(self.context.pane_shares.remove(&self.context.view)),
            Action::Zoom => self.context.is_zoomed = !self.context.is_zoomed,
            Action::Refresh => {
                let servers = self.servers.rows.iter();
                let ask = servers.map(|row| AppEffect::ListServer(row.name.clone()));
                self.context.effects.extend([AppEffect::ListDeclared].into_iter().chain(ask));
            }
            Action::Back => {}
            Action::Trust => self.trust.open(&mut self.context),
            Action::Attach => self.trust.attach(&mut self.context),
            Action::Reload => {
                let runs = self.context.calls.is_running() || self.bench.is_running();
                self.trust.reload(!runs, &mut self.context);
            }
            Action::Cancel => self.cancel(),
            Action::Redraw => self.context.emit(AppEffect::Redraw),
            Action::Suspend => self.context.emit(AppEffect::Suspend),
            Action::Quit => self.request_quit(),
            other => {
                if let Some(by) = action_step(other, self.page_height()) {
                    self.scroll(by);
                }
            }
        }
    }

    /// How many lines a page has of what scrolls: of the window that has the keys, else of the focused
    /// pane.
    fn page_height(&mut self) -> usize {
        if let Some(text) = self.window_text() {
            return text.position.height();
        }
        match &self.context.overlay {
            Some(Overlay::Help(window)) => window.position.height(),
            _ => self.context.page_height(),
        }
    }

    /// The text of the window that has the keys, if it is one that scrolls.
    fn window_text(&mut self) -> Option<&mut ScrollText> {
        if let Some(pending) = self.inbox.approvals.front_mut() {
            return Some(pending.text_mut());
        }
        if let Some(window) = &mut self.trust.window {
            return Some(&mut window.text.text);
        }
        match self.context.overlay {
            Some(Overlay::Problems) => Some(&mut self.configuration_problems.text),
            Some(Overlay::Pin) => self.pin_window.as_mut().map(|window| &mut window.text.text),
            _ => None,
        }
    }

    pub fn scroll(&mut self, by: isize) {
        if let Some(text) = self.window_text() {
            return text.scroll(by);
        }
        let running = self.context.calls.running().count();
        match &mut self.context.overlay {
            Some(Overlay::Help(window)) => window.position.scroll(by),
            Some(Overlay::Palette(palette)) => palette.list.step(by),
            Some(Overlay::Running(list)) => list.step(by, running),
            Some(_) => {}
            None => {
                let (view, context) = self.active_view();
                view.scroll(context.focus, by, context);
            }
        }
    }

    /// Starts a program with the chosen tool, its last arguments and its last result.
    fn start_program(&mut self, number: u8) {
        let Some(argv) = self.context.keys.programs.get(usize::from(number)).cloned() else {
            return;
        };
        let tool = self.tools.catalogue.chosen();
        let name = tool.map_or("", |row| row.name.as_str());
        let outcome = self.context.calls.newest_of(name).and_then(|call| call.outcome.as_deref());
        let input = json!({
            "tool": tool.map(|row| &row.tool),
            "arguments": self.context.calls.arguments_of(name),
            "result": outcome.and_then(result_of).map(|result| &result.output),
        });
        self.context.show_status(format!("{}…", argv[0]));
        self.context.emit(user_program::start(argv, input.to_string()));
    }

    fn cancel(&mut self) {
        let newest = self.context.calls.running().next().map(|call| (call.run, call.tool.clone()));
        let is_confirming = self.context.overlay == Some(Overlay::ConfirmQuit);
        match newest {
            Some((run, tool)) if !is_confirming => {
                self.context.overlay = None;
                self.context.show_status(format!("cancelling {tool}…"));
                self.context.emit(AppEffect::Cancel(run));
            }
            _ if self.bench.running().is_some_and(|run| !run.is_stopping) => {
                self.bench.stop(&mut self.context);
            }
            // Pressed again it is meant; but what is being filled in is not lost that way.
            _ if is_confirming && self.form().is_none() && !self.tools.has_drafts() => {
                self.context.emit(AppEffect::Quit(None));
            }
            _ => self.context.overlay = Some(Overlay::ConfirmQuit),
        }
    }

    pub fn request_quit(&mut self) {
        if self.context.calls.is_running() || self.bench.is_running() {
            self.context.overlay = Some(Overlay::ConfirmQuit);
        } else {
            self.context.emit(AppEffect::Quit(None));
        }
    }
}

fn written(line: &mut TextInput, key: KeyPress) -> bool {
    match key {
        KeyPress::Char(c) => line.insert(c.encode_utf8(&mut [0; 4])),
        KeyPress::Backspace => line.backspace(),
        KeyPress::Ctrl('w') => line.erase_word(),
        KeyPress::Ctrl('u') => line.clear_line(),
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
    pub fn host_switched(&mut self) {
        self.trust.on_host_switched(&mut self.context);
        self.configuration_problems = ConfigurationProblems::of(self.trust.diagnostics());
        self.servers.clear();
        self.relisting.clear();
        self.tools.catalogue.forget_servers();
        self.context.effects.extend([AppEffect::ListDeclared, AppEffect::RefreshServers]);
        self.offerings.forget_servers(&mut self.context);
        self.stats.refresh(&mut self.context);
    }

    fn handle_trust_action(&mut self, action: Action) {
        if self.trust.decide(action, &mut self.context) {
            return;
        }
        match action {
            Action::Quit => {
                // Whether to leave although calls run must be seen.
                self.trust.window = None;
                self.request_quit();
            }
            Action::Cancel => {
                self.trust.window = None;
                self.act_anywhere(action);
            }
            Action::Redraw | Action::Suspend => self.act_anywhere(action),
            _ if action_step(action, 1).is_some() => self.act_anywhere(action),
            _ => {}
        }
    }
}
