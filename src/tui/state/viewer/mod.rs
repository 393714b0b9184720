//! What calls of a tool gave: one of them at a time, as text, as a tree, or as it came.
//!
//! Owns: which call is looked at and how; its text or tree, made once when that changes.

mod pages;

use super::{Call, Calls, Document, Tree};
use crate::host::content;
use crate::host::request::Rehearsal;
use crate::model::Fault;
use crate::tui::event::RunId;
use crate::tui::event::tools::Saved;

/// How a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Face {
    /// As text for people.
    #[default]
    Text,
    /// Its value as a tree.
    Tree,
    /// Everything that came, as JSON.
    Raw,
}

impl Face {
    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Tree => "json",
            Self::Raw => "raw",
        }
    }

    /// The next one.
    fn next(self) -> Self {
        match self {
            Self::Text => Self::Tree,
            Self::Tree => Self::Raw,
            Self::Raw => Self::Text,
        }
    }
}

/// What is looked at.
#[derive(Debug, Default)]
pub struct Viewer {
    /// How it is shown.
    pub face: Face,
    /// How many calls of the tool are newer than the one that is shown.
    pub back: usize,
    /// How far it is scrolled, in lines of the text.
    pub scroll: usize,
    /// The text, when it is shown as one.
    pub text: Document,
    /// The tree, when it is shown as one.
    pub tree: Tree,
    /// What a call would send, by the tool: shown in place of results until something else is.
    pub rehearsal: Option<(String, Document)>,
    /// What text and tree were made of.
    made_of: Option<(RunId, Face)>,
}

impl Viewer {
    /// The call that is shown of a tool.
    pub fn call<'a>(&self, tool: &'a str, calls: &'a Calls) -> Option<&'a Call> {
        calls.all_of(tool).nth(self.back)
    }

    /// What a call of the tool would send, when that is shown.
    pub fn rehearsal_of(&self, tool: &str) -> Option<&Document> {
        self.rehearsal.as_ref().filter(|(of, _)| of == tool).map(|(_, document)| document)
    }

    /// Shows the newest.
    pub fn reset(&mut self) {
        (self.back, self.scroll, self.rehearsal) = (0, 0, None);
    }

    /// Shows it another way.
    pub fn turn(&mut self) {
        self.face = self.face.next();
        self.scroll = 0;
    }

    /// Shows another call of the tool: an older one, or a newer one when negative.
    pub fn step(&mut self, by: isize, tool: &str, calls: &Calls) {
        let most = calls.all_of(tool).count().saturating_sub(1);
        self.back = self.back.saturating_add_signed(by).min(most);
        (self.scroll, self.rehearsal) = (0, None);
    }

    /// Shows what a call would send.
    pub fn rehearsed(&mut self, tool: String, rehearsal: &Result<Rehearsal, Fault>) {
        self.scroll = 0;
        self.rehearsal = Some((tool, pages::rehearsal(rehearsal)));
    }

    /// So many lines on, in a window of this height.
    pub fn scroll(&mut self, by: isize, tool: &str, height: usize) {
        let document = match self.rehearsal_of(tool) {
            Some(document) => document,
            None if self.face == Face::Tree => return self.tree.step(by),
            None => &self.text,
        };
        let most = document.len().saturating_sub(height);
        self.scroll = self.scroll.saturating_add_signed(by).min(most);
    }

    /// Makes the text or the tree anew when another one is looked at, or it ended.
    pub fn refresh(&mut self, tool: Option<&str>, calls: &Calls) {
        let call = tool.and_then(|tool| self.call(tool, calls));
        let ended = call.and_then(|call| Some((call, call.outcome.as_ref()?)));
        let wanted = ended.map(|(call, _)| (call.run, self.face));
        if wanted == self.made_of {
            return;
        }
        self.made_of = wanted;
        (self.text, self.tree, self.scroll) = (Document::default(), Tree::default(), 0);
        let Some((call, outcome)) = ended else { return };
        match (self.face, outcome) {
            (Face::Tree, Ok(outcome)) if outcome.result.is_ok() => {
                let result = outcome.result.as_ref().map(content::value);
                self.tree = result.map(|value| Tree::of(&value)).unwrap_or_default();
            }
            (Face::Raw, Ok(outcome)) if outcome.result.is_ok() => {
                self.text = outcome.result.as_ref().map(pages::raw).unwrap_or_default();
            }
            _ => self.text = pages::text(call, outcome),
        }
    }

    /// What of the call that is shown is worth a file; `None` when it gave nothing.
    pub fn saved(&self, call: &Call) -> Option<Saved> {
        let result = call.outcome.as_ref()?.as_ref().ok()?.result.as_ref().ok()?;
        Some(match self.face {
            Face::Text => Saved::Blocks {
                content: result.content.clone(),
                structured: result.structured.clone(),
                output: result.output.clone(),
            },
            Face::Tree => Saved::Json(content::value(result)),
            Face::Raw => Saved::Json(pages::whole(result)),
        })
    }
}
