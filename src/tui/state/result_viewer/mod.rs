//! The result pane: results of a tool's calls, one at a time, as text, tree or raw JSON.
//!
//! Owns: which call is looked at and how; its text or tree, made once when that changes.

mod documents;

use super::{ConsoleCall, ConsoleCalls, JsonTree, ScrollPosition, ScrollText};
use crate::host::content;
use crate::host::request::DryRun;
use crate::model::Error;
use crate::tui::event::ConsoleCallId;
use crate::tui::event::tools::ResultExport;

/// The format a result is shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultFormat {
    /// Content blocks and facts as text for people.
    #[default]
    Text,
    /// Its value as a tree.
    Tree,
    /// Everything that came, as JSON.
    Raw,
}

impl ResultFormat {
    /// The title on the screen.
    pub fn title(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Tree => "json",
            Self::Raw => "raw",
        }
    }

    /// The format after this one; the last leads to the first.
    fn next(self) -> Self {
        match self {
            Self::Text => Self::Tree,
            Self::Tree => Self::Raw,
            Self::Raw => Self::Text,
        }
    }
}

/// Which result of a tool is shown, in which format and where it is scrolled to.
#[derive(Debug, Default)]
pub struct ResultViewer {
    /// The format of the result.
    pub format: ResultFormat,
    /// How many calls of the tool are newer than the one that is shown.
    pub newer_calls: usize,
    /// How far the account of a running call is scrolled; it is made while it is drawn.
    pub position: ScrollPosition,
    /// The text, when it is shown as one.
    pub text: ScrollText,
    /// The tree, when it is shown as one.
    pub tree: JsonTree,
    /// What a call would send, by the tool: shown in place of results until something else is.
    pub dry_run: Option<(String, ScrollText)>,
    /// What text and tree were made of.
    source: Option<(ConsoleCallId, ResultFormat)>,
}

impl ResultViewer {
    /// The call that is shown of a tool.
    pub fn call<'a>(&self, tool: &'a str, calls: &'a ConsoleCalls) -> Option<&'a ConsoleCall> {
        calls.all_of(tool).nth(self.newer_calls)
    }

    /// What a call of the tool would send, when that is shown.
    pub fn dry_run_of(&self, tool: &str) -> Option<&ScrollText> {
        self.dry_run.as_ref().filter(|(of, _)| of == tool).map(|(_, document)| document)
    }

    /// Shows the newest call from the top.
    pub fn reset(&mut self) {
        (self.newer_calls, self.dry_run) = (0, None);
        self.scroll_to_top();
    }

    /// Switches to the next format.
    pub fn next_format(&mut self) {
        self.format = self.format.next();
        self.scroll_to_top();
    }

    /// Shows another call of the tool: an older one, or a newer one when negative.
    pub fn step(&mut self, by: isize, tool: &str, calls: &ConsoleCalls) {
        let most = calls.all_of(tool).count().saturating_sub(1);
        self.newer_calls = self.newer_calls.saturating_add_signed(by).min(most);
        self.dry_run = None;
        self.scroll_to_top();
    }

    /// Shows what a call would send.
    pub fn set_dry_run(&mut self, tool: String, dry_run: &Result<DryRun, Error>) {
        self.dry_run = Some((tool, documents::dry_run_document(dry_run)));
    }

    /// Scrolls what is shown of this tool by so many rows, up when negative.
    pub fn scroll(&mut self, by: isize, tool: &str) {
        match &mut self.dry_run {
            Some((of, document)) if of == tool => document.scroll(by),
            _ if !self.tree.is_empty() => self.tree.step(by),
            _ => {
                self.text.scroll(by);
                self.position.scroll(by);
            }
        }
    }

    /// Goes back to the top.
    pub fn scroll_to_top(&mut self) {
        self.text.scroll_to_top();
        self.position.reset();
    }

    /// Makes the text or the tree anew when another one is looked at, or it ended.
    pub fn refresh(&mut self, tool: Option<&str>, calls: &ConsoleCalls) {
        let call = tool.and_then(|tool| self.call(tool, calls));
        let ended = call.and_then(|call| Some((call, call.outcome.as_ref()?)));
        let wanted = ended.map(|(call, _)| (call.run, self.format));
        if wanted == self.source {
            return;
        }
        self.source = wanted;
        (self.text, self.tree) = (ScrollText::default(), JsonTree::default());
        self.position.reset();
        let Some((call, outcome)) = ended else { return };
        match (self.format, outcome) {
            (ResultFormat::Tree, Ok(outcome)) if outcome.result.is_ok() => {
                let result = outcome.result.as_ref().map(content::filter_input);
                self.tree = result.map(|value| JsonTree::of(&value)).unwrap_or_default();
            }
            (ResultFormat::Raw, Ok(outcome)) if outcome.result.is_ok() => {
                self.text = outcome.result.as_ref().map(documents::raw).unwrap_or_default();
            }
            _ => self.text = documents::text(call, outcome),
        }
    }

    /// What of the call that is shown is worth a file; `None` when it gave nothing.
    pub fn exportable(&self, call: &ConsoleCall) -> Option<ResultExport> {
        let result = call.outcome.as_ref()?.as_ref().ok()?.result.as_ref().ok()?;
        Some(match self.format {
            ResultFormat::Text => ResultExport::Blocks {
                content: result.content.clone(),
                structured: result.structured.clone(),
                output: result.output.clone(),
            },
            ResultFormat::Tree => ResultExport::Json(content::filter_input(result)),
            ResultFormat::Raw => ResultExport::Json(documents::whole(result)),
        })
    }
}
