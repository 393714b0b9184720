//! The benchmark: what is to be run, the run, what it showed.

mod form;
mod pick;

use std::sync::Arc;

use super::{Line, Pane, Row, Shell, Stage};
use crate::bench::account::{Account, Form};
use crate::bench::seen::Seen;
use crate::model::{Fault, JsonObject};
use crate::tui::event::bench::{News, Order, Wish};
use crate::tui::event::{Effect, Errand};
use crate::tui::keys::{Action, When};
pub use form::{Entry, PlanForm, Side};
pub use pick::Picker;

/// The benchmark: what is to be run, the run, what it showed.
#[derive(Debug, Default)]
pub struct Bench {
    /// What is to be run.
    pub form: PlanForm,
    /// The tools that a target is chosen of, while it is.
    pub picker: Option<Picker>,
    /// A file that is to be written, while it is named.
    pub file: Option<(Purpose, Line)>,
    /// The newest run.
    pub run: Option<Run>,
    /// How far the run is scrolled.
    pub run_scroll: usize,
    /// How far the verdict is scrolled.
    pub verdict_scroll: usize,
}

/// What a file is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// For other programs.
    Export,
    /// For later runs, to be compared with.
    Baseline,
}

/// A run.
#[derive(Debug)]
pub struct Run {
    /// Counts up from 1.
    pub number: u64,
    /// What it is to do.
    pub order: Order,
    /// The command line that runs the same.
    pub command_line: String,
    /// What was seen of it last; `None` while the tools are being found.
    pub seen: Option<Box<Seen>>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// Whether it makes no calls for now.
    pub is_paused: bool,
    /// Whether it was told to end.
    pub is_stopping: bool,
    /// What became of it; `None` while it goes on.
    pub end: Option<Result<Arc<Account>, Fault>>,
}

impl Stage for Bench {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        if self.file.is_some() {
            return self.act_naming(action, shell);
        }
        if self.picker.is_some() {
            return self.act_picking(action, shell);
        }
        if self.form.is_writing
            && let Some(effects) = self.act_writing(action)
        {
            return Some(effects);
        }
        match action {
            Action::TargetA => return Some(pick(Side::A, shell)),
            Action::TargetB => return Some(pick(Side::B, shell)),
            Action::Fill => return Some(self.write(shell)),
            Action::Run => return Some(self.start(shell)),
            Action::Model => {
                self.form.go(Entry::Model);
                self.form.turn();
                let model = if self.form.is_open { "open: at a rate" } else { "closed" };
                shell.say(format!("the load is {model}"));
            }
            Action::PreviousChoice | Action::NextChoice => drop(self.form.turn()),
            Action::Unset => self.form.clear(),
            Action::Stop => return Some(self.stop(shell)),
            Action::Pause => return Some(self.pause(shell)),
            Action::Export => self.name(Purpose::Export, shell),
            Action::Baseline => self.name(Purpose::Baseline, shell),
            Action::Copy | Action::CopyCommand => {
                shell.say("copied as a command");
                return Some(vec![Effect::Copy(self.form.command_line())]);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn places(&self, focus: Pane) -> Vec<When> {
        if self.file.is_some() || self.picker.is_some() {
            return vec![When::Choosing];
        }
        if self.form.is_writing && focus == Pane::Plan {
            return vec![When::Form];
        }
        vec![When::Bench, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        match (focus, &mut self.picker) {
            (Pane::Plan, Some(picker)) => picker.step(by),
            (Pane::Plan, None) => self.form.step(by),
            (Pane::Run, _) => self.run_scroll = self.run_scroll.saturating_add_signed(by),
            _ => self.verdict_scroll = self.verdict_scroll.saturating_add_signed(by),
        }
    }

    fn line(&mut self, focus: Pane) -> Option<&mut Line> {
        match (&mut self.file, &mut self.picker) {
            (Some((_, line)), _) => Some(line),
            (None, Some(picker)) => Some(&mut picker.words),
            (None, None) if focus == Pane::Plan => self.form.writing(),
            _ => None,
        }
    }

    fn rewritten(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        match (&self.file, &mut self.picker) {
            (None, Some(picker)) => picker.search(),
            _ => self.form.flaw = None,
        }
        Vec::new()
    }
}

impl Bench {
    /// Whether a run goes on.
    pub fn is_running(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.end.is_none())
    }

    /// Whether a run goes on that was not told to end.
    pub fn is_stoppable(&self) -> bool {
        self.is_running() && self.run.as_ref().is_some_and(|run| !run.is_stopping)
    }

    /// Lets a tool be chosen of these.
    pub fn choose_of(&mut self, side: Side, rows: Vec<Arc<Row>>, shell: &mut Shell) {
        shell.focus = Pane::Plan;
        self.picker = Some(Picker::of(side, rows));
    }

    /// Benchmarks this tool next.
    pub fn put(&mut self, tool: &str, arguments: Option<&JsonObject>) {
        self.picker = None;
        self.form.is_writing = false;
        self.form.put(Side::A, tool, arguments);
        self.form.go(Entry::ArgumentsA);
    }

    /// Takes in what came of a wish.
    pub fn take(&mut self, news: News, shell: &mut Shell) -> Vec<Effect> {
        match news {
            News::Kept(path) => {
                let path = path.display().to_string();
                shell.say(format!("kept in {path}; the next run is compared with it"));
                self.form.set(Entry::Baseline, path);
            }
            News::Began { run, warnings } => {
                if let Some(own) = self.of(run) {
                    own.warnings = warnings;
                    own.seen = Some(Box::default());
                }
            }
            News::Seen { run, seen } => {
                if let Some(own) = self.of(run) {
                    own.seen = Some(seen);
                }
            }
            News::Ended { run, seen, outcome } => {
                let Some(own) = self.of(run) else { return Vec::new() };
                own.seen = Some(seen);
                let end = (*outcome).map(Arc::new);
                let (said, is_bad) = said(run, &end);
                own.end = Some(end);
                self.verdict_scroll = 0;
                if is_bad {
                    shell.say_bad(said);
                } else {
                    shell.say(said);
                }
            }
        }
        Vec::new()
    }

    /// Tells the run to end, and keeps what was measured.
    pub fn stop(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(run) = self.run.as_mut().filter(|run| run.end.is_none()) else {
            shell.say("nothing runs here");
            return Vec::new();
        };
        run.is_stopping = true;
        shell.say("no more calls are made; what was measured is kept");
        vec![Effect::Bench(Wish::Stop)]
    }

    fn of(&mut self, number: u64) -> Option<&mut Run> {
        self.run.as_mut().filter(|run| run.number == number && run.end.is_none())
    }

    fn act_naming(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        match action {
            Action::Open => Some(self.named(shell)),
            Action::Back => {
                self.file = None;
                Some(Vec::new())
            }
            _ => None,
        }
    }

    fn act_picking(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        match action {
            Action::Open => {
                let Some(picker) = self.picker.take() else { return Some(Vec::new()) };
                let Some(row) = picker.chosen() else {
                    shell.say_bad("no tool is found so");
                    self.picker = Some(picker);
                    return Some(Vec::new());
                };
                let (side, tool) = (picker.side, row.name.clone());
                Some(vec![Effect::Go(Errand::BenchOn { side, tool })])
            }
            Action::Back => {
                self.picker = None;
                Some(Vec::new())
            }
            _ => None,
        }
    }

    fn act_writing(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::NextField => self.form.step(1),
            Action::PreviousField => self.form.step(-1),
            Action::PreviousChoice => self.form.writing()?.left(),
            Action::NextChoice => self.form.writing()?.right(),
            Action::Back => self.form.is_writing = false,
            _ => return None,
        }
        Some(Vec::new())
    }

    fn write(&mut self, shell: &mut Shell) -> Vec<Effect> {
        shell.focus = Pane::Plan;
        match self.form.current() {
            Entry::ToolA => return pick(Side::A, shell),
            Entry::ToolB => return pick(Side::B, shell),
            entry if entry.is_choice() => drop(self.form.turn()),
            _ => self.form.is_writing = true,
        }
        Vec::new()
    }

    fn start(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if self.is_running() {
            shell.say_bad("a run goes on; 'x' stops it and keeps what was measured");
            return Vec::new();
        }
        let order = match self.form.order() {
            Ok(order) => order,
            Err(flaw) => {
                self.form.go(flaw.entry);
                self.form.flaw = Some(flaw);
                shell.focus = Pane::Plan;
                return Vec::new();
            }
        };
        self.form.is_writing = false;
        self.form.flaw = None;
        let number = self.run.as_ref().map_or(1, |run| run.number + 1);
        self.run = Some(Run {
            number,
            order: order.clone(),
            command_line: self.form.command_line(),
            seen: None,
            warnings: Vec::new(),
            is_paused: false,
            is_stopping: false,
            end: None,
        });
        (self.run_scroll, self.verdict_scroll) = (0, 0);
        shell.focus = Pane::Run;
        shell.say(format!("run {number} begins; the trace rests meanwhile"));
        vec![Effect::Bench(Wish::Start { run: number, order: Box::new(order) })]
    }

    fn pause(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(run) = self.run.as_mut().filter(|run| run.end.is_none()) else {
            shell.say("nothing runs here");
            return Vec::new();
        };
        run.is_paused = !run.is_paused;
        shell.say(if run.is_paused {
            "paused: no calls are made; Space goes on"
        } else {
            "it goes on"
        });
        vec![Effect::Bench(Wish::Pause(run.is_paused))]
    }

    fn name(&mut self, purpose: Purpose, shell: &mut Shell) {
        let Some((number, _)) = self.account() else {
            return shell.say_bad("there is no run yet that could be written");
        };
        let name = match (purpose, self.form.text(Entry::Baseline)) {
            (Purpose::Export, _) => format!("bench-{number}.md"),
            (Purpose::Baseline, "") => "baseline.json".to_owned(),
            (Purpose::Baseline, known) => known.to_owned(),
        };
        self.file = Some((purpose, Line::of(name)));
    }

    fn named(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some((purpose, line)) = self.file.take() else { return Vec::new() };
        let Some((_, account)) = self.account() else { return Vec::new() };
        let (form, name) = form_of(line.text().trim());
        let Some(form) = form else {
            shell.say_bad("end it in .json .csv .md .hgrm or .svg, or write hyperfine=FILE");
            self.file = Some((purpose, line));
            return Vec::new();
        };
        let path = name.into();
        match purpose {
            Purpose::Export => vec![Effect::Write { path, text: account.text(form) }],
            Purpose::Baseline => {
                vec![Effect::Bench(Wish::Keep { path, text: account.text(Form::Json) })]
            }
        }
    }

    fn account(&self) -> Option<(u64, &Account)> {
        let run = self.run.as_ref()?;
        match run.end.as_ref()? {
            Ok(account) => Some((run.number, account)),
            Err(_) => None,
        }
    }
}

/// Asks for the tools that one side is chosen of.
fn pick(side: Side, shell: &mut Shell) -> Vec<Effect> {
    shell.focus = Pane::Plan;
    vec![Effect::Go(Errand::ChooseTool(side))]
}

/// The form that a file is written in, and its name.
fn form_of(text: &str) -> (Option<Form>, &str) {
    match text.split_once('=') {
        Some(("hyperfine", name)) if !name.is_empty() => (Some(Form::Hyperfine), name),
        _ => (Form::of(text), text),
    }
}

/// What a run ended as, in one sentence, and whether that is bad.
fn said(number: u64, end: &Result<Arc<Account>, Fault>) -> (String, bool) {
    let account = match end {
        Err(fault) => return (format!("run {number}: {}", fault.message()), true),
        Ok(account) => account,
    };
    if let Some(fault) = account.fault() {
        return (format!("run {number}: {}", fault.message()), true);
    }
    match account.findings.comparisons.first() {
        Some(compared) => (format!("run {number} is done: {}", compared.sentence()), false),
        None => (format!("run {number} is done"), false),
    }
}

#[cfg(test)]
pub(in crate::tui) mod tests;
