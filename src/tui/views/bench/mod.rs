//! The benchmark view: plan, run, results.

pub mod draw;
pub mod plan;
pub mod tasks;
#[cfg(test)]
pub mod tests;

use crate::bench::RunControl;
use crate::bench::bench_result::{BenchResult, ExportFormat};
use crate::bench::snapshot::BenchSnapshot;
use crate::tui::keys::KeyPress::{Char, Delete, Enter, F};
use crate::tui::keys::PICKER;
use crate::tui::prelude::*;
use crate::tui::tasks::write_file;
use crate::tui::views::bench::plan::{PlanField, PlanForm, TargetSide, ToolPicker};
use crate::tui::views::bench::tasks::BenchRunSpec;
use crate::tui::views::form::FORM;
use crate::tui::views::tools::list::{ToolRow, ToolSearch};
use crate::tui::widgets::filter::Picker;

/// The benchmark: what is to be run, the run, what it showed.
#[derive(Debug, Default)]
pub struct BenchView {
    pub form: PlanForm,
    pub picker: Option<ToolPicker>,
    pub file: Option<TextInput>,
    /// The newest run, in progress or ended; `None` before the first.
    pub run: Option<BenchRun>,
    pub run_position: ScrollPosition,
    pub verdict_position: ScrollPosition,
}

#[derive(Debug)]
pub struct BenchRun {
    /// The number of the run in this console, from 1 on.
    pub number: u64,
    pub spec: BenchRunSpec,
    pub command_line: String,
    /// What was seen of it last; `None` while the tools are being found.
    pub snapshot: Option<Box<BenchSnapshot>>,
    pub warnings: Vec<String>,
    pub control: RunControl,
    pub is_stopping: bool,
    /// What became of it; `None` while it goes on.
    pub end: Option<Result<Arc<BenchResult>, Error>>,
}

impl View for BenchView {
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool {
        match action {
            Action::Open if self.file.is_some() => self.write_file(context),
            Action::Back if self.file.take().is_some() => {}
            _ if self.file.is_some() => return false,
            Action::Open if self.picker.is_some() => self.pick(context),
            Action::Back if self.picker.take().is_some() => {}
            _ if self.picker.is_some() => return false,
            _ if self.form.is_writing && self.act_in_field(action) => {}
            Action::TargetA => pick(TargetSide::A, context),
            Action::TargetB => pick(TargetSide::B, context),
            Action::Fill => self.write(context),
            Action::Run => self.start(context),
            Action::Unset => self.form.clear(),
            Action::Stop => self.stop(context),
            Action::Pause => self.pause(context),
            Action::Export => match self.account() {
                Some((number, _)) => self.file = Some(TextInput::of(format!("bench-{number}.md"))),
                None => context.show_error("no run to export yet"),
            },
            Action::Copy | Action::CopyCommand => {
                context.copy("command", self.form.command_line(&context.command_end));
            }
            _ => return false,
        }
        true
    }

    fn key_contexts(&self, focus: Pane) -> Vec<KeyContext> {
        if self.file.is_some() || self.picker.is_some() {
            return vec![&PICKER];
        }
        if self.form.is_writing && focus == Pane::Plan {
            return vec![&FORM];
        }
        vec![&BENCH, &PANE, &ANYWHERE]
    }

    fn scroll(&mut self, pane: Pane, by: isize, _context: &mut AppContext) {
        match (pane, &mut self.picker) {
            (Pane::Plan, Some(picker)) => picker.tools.list.step(by),
            (Pane::Plan, None) => self.form.step(by),
            (Pane::Run, _) => self.run_position.scroll(by),
            _ => self.verdict_position.scroll(by),
        }
    }

    fn line(&mut self, focus: Pane) -> Option<&mut TextInput> {
        match (&mut self.file, &mut self.picker) {
            (Some(line), _) => Some(line),
            (None, Some(picker)) => Some(&mut picker.tools.list.filter.line),
            (None, None) if focus == Pane::Plan => self.form.active_input(),
            _ => None,
        }
    }

    fn on_text_changed(&mut self, _context: &mut AppContext) {
        match (&self.file, &mut self.picker) {
            (None, Some(picker)) => {
                picker.tools.search(|letters, rows| ToolSearch::of(letters).find(rows));
            }
            _ => self.form.error = None,
        }
    }
}

impl BenchView {
    /// The run that goes on, if one does.
    pub fn running(&self) -> Option<&BenchRun> {
        self.run.as_ref().filter(|run| run.end.is_none())
    }

    pub fn is_running(&self) -> bool {
        self.running().is_some()
    }

    /// Lets a tool be chosen of these.
    pub fn open_picker(
        &mut self,
        side: TargetSide,
        rows: Vec<Arc<ToolRow>>,
        context: &mut AppContext,
    ) {
        context.focus = Pane::Plan;
        self.picker = Some(ToolPicker { side, tools: Picker::of(rows) });
    }

    /// Makes this tool the target of the next run, with its arguments if they are known.
    pub fn set_target(&mut self, tool: &str, arguments: Option<&JsonObject>) {
        self.picker = None;
        self.form.is_writing = false;
        self.form.set_target(TargetSide::A, tool, arguments);
        self.form.focus_field(PlanField::ArgumentsA);
    }

    /// The tools were found; calls are made from now on.
    pub fn started(&mut self, run: u64, warnings: Vec<String>) {
        if let Some(own) = self.active_run(run) {
            own.warnings = warnings;
            own.snapshot = Some(Box::default());
        }
    }

    /// The figures so far; several times a second.
    pub fn seen(&mut self, run: u64, snapshot: Box<BenchSnapshot>) {
        if let Some(own) = self.active_run(run) {
            own.snapshot = Some(snapshot);
        }
    }

    /// The run has ended, by itself, by request or with an error.
    pub fn finished(
        &mut self,
        run: u64,
        snapshot: Box<BenchSnapshot>,
        result: Result<BenchResult, Error>,
        context: &mut AppContext,
    ) {
        let Some(own) = self.active_run(run) else { return };
        own.snapshot = Some(snapshot);
        let end = result.map(Arc::new);
        match end.as_ref().map_err(Error::clone).and_then(|r| r.failure().map_or(Ok(r), Err)) {
            Err(error) => context.show_error(format!("run {run}: {}", error.message())),
            Ok(result) => {
                let compared = result.findings.comparisons.first();
                let compared = compared.map(|it| format!(": {}", it.headline_sentence()));
                context.show_status(format!("run {run} finished{}", compared.unwrap_or_default()));
            }
        }
        own.end = Some(end);
        self.verdict_position.reset();
    }

    /// Tells the run to end, and keeps what was measured.
    pub fn stop(&mut self, context: &mut AppContext) {
        let Some(run) = self.run.as_mut().filter(|run| run.end.is_none()) else {
            return context.show_status("no run in progress");
        };
        run.is_stopping = true;
        context.show_status("stopping; the results so far are kept");
        context.emit(AppEffect::Stop(tasks::SLOT.to_owned()));
    }

    fn active_run(&mut self, number: u64) -> Option<&mut BenchRun> {
        self.run.as_mut().filter(|run| run.number == number && run.end.is_none())
    }

    fn pick(&mut self, context: &mut AppContext) {
        let Some(picker) = &self.picker else { return };
        let Some(row) = picker.tools.chosen() else {
            return context.show_error("no matching tool");
        };
        context.emit(Navigation::SetBenchTarget { side: picker.side, tool: row.name.clone() });
        self.picker = None;
    }

    fn act_in_field(&mut self, action: Action) -> bool {
        match (action, self.form.active_input()) {
            (Action::NextField, _) => self.form.step(1),
            (Action::PreviousField, _) => self.form.step(-1),
            (Action::PreviousChoice, Some(line)) => line.left(),
            (Action::NextChoice, Some(line)) => line.right(),
            (Action::Back, _) => self.form.is_writing = false,
            _ => return false,
        }
        true
    }

    fn write(&mut self, context: &mut AppContext) {
        context.focus = Pane::Plan;
        match self.form.current() {
            PlanField::ToolA => pick(TargetSide::A, context),
            PlanField::ToolB => pick(TargetSide::B, context),
            _ => self.form.is_writing = true,
        }
    }

    fn start(&mut self, context: &mut AppContext) {
        if self.is_running() {
            return context.show_error("a run is in progress; x stops it");
        }
        let spec = match self.form.run_spec() {
            Ok(spec) => spec,
            Err((field, error)) => {
                context.show_error(format!("{}: {}", field.title(), error.message()));
                self.form.focus_field(field);
                self.form.error = Some((field, error));
                context.focus = Pane::Plan;
                return;
            }
        };
        self.form.is_writing = false;
        self.form.error = None;
        let number = self.run.as_ref().map_or(1, |run| run.number + 1);
        let control = RunControl::default();
        self.run = Some(BenchRun {
            number,
            spec: spec.clone(),
            command_line: self.form.command_line(&context.command_end),
            snapshot: None,
            warnings: Vec::new(),
            control: control.clone(),
            is_stopping: false,
            end: None,
        });
        self.run_position.reset();
        self.verdict_position.reset();
        context.focus = Pane::Run;
        context.show_status(format!("run {number} started; tracing is paused"));
        context.emit(tasks::start(number, spec, control));
    }

    fn pause(&mut self, context: &mut AppContext) {
        let Some(run) = self.running() else {
            return context.show_status("no run in progress");
        };
        if run.control.is_paused() {
            run.control.resume();
            context.show_status("resumed");
        } else {
            run.control.pause();
            context.show_status("paused; Space resumes");
        }
    }

    fn write_file(&mut self, context: &mut AppContext) {
        let (Some(line), Some((_, account))) = (&self.file, self.account()) else { return };
        let name = line.text().trim();
        match ExportFormat::from_file_name(name) {
            Some(format) => {
                context.emit(write_file(name.into(), account.render(format)));
                self.file = None;
            }
            None => context.show_error("use a .json, .csv, .md or .html file"),
        }
    }

    fn account(&self) -> Option<(u64, &BenchResult)> {
        let run = self.run.as_ref()?;
        Some((run.number, run.end.as_ref()?.as_ref().ok()?))
    }
}

fn pick(side: TargetSide, context: &mut AppContext) {
    context.focus = Pane::Plan;
    context.emit(Navigation::PickBenchTarget(side));
}

#[rustfmt::skip]
pub const BENCH: KeyTable = KeyTable { name: "bench", title: "Benchmark", rows: &[
    row(&[Enter, F(5)], Action::Run, "start", "start the run"),
    row(&[Char('x')], Action::Stop, "stop", "stop the run and keep its results"),
    row(&[Char(' ')], Action::Pause, "pause", "pause or resume"),
    row(&[Char('a'), Char('/')], Action::TargetA, "tool A", "choose tool A"),
    row(&[Char('b')], Action::TargetB, "tool B", "choose tool B, to compare with A"),
    row(&[Char('e')], Action::Fill, "edit", "edit the plan entry"),
    row(&[Char('E')], Action::Export, "export", "export the run: .json .csv .md .html"),
    row(&[Char('Y')], Action::CopyCommand, "copy as command", "copy the run as a command"),
    row(&[Delete], Action::Unset, "", "unset the entry"),
] };
