//! What is taken from the last run, and kept for the next.

use super::{Sort, State, View};
use crate::tui::event::Effect;
use crate::tui::event::memory::News;
use crate::tui::memory::{Colours, Memory};
use crate::tui::theme::Palette;

/// What is kept for the next run.
#[derive(Debug, Default)]
pub struct Keep {
    /// Whether a person did anything yet: who is at work is not taken elsewhere.
    pub is_touched: bool,
    /// Whether the memory of the last run has come; before that nothing may be written over it.
    is_recalled: bool,
    /// The colours of the settings.
    configured: Palette,
    /// What was kept last.
    memory: Memory,
    /// How many calls were made until then.
    made: u64,
}

impl State {
    /// Takes in what a person set and what was remembered.
    pub(super) fn recalled(&mut self, news: News) -> Vec<Effect> {
        let News { settings, memory, problems } = news;
        let memory = memory.unwrap_or_default();
        let look = &mut self.shell.look;
        look.ascii |= settings.ascii;
        look.is_still |= settings.reduced_motion;
        look.mouse |= settings.mouse;
        self.keep.configured = settings.theme.unwrap_or_default();
        look.palette = self.keep.configured;
        if let Some(chosen) = &memory.theme
            && chosen.over == self.keep.configured.name()
            && let Some(palette) = Palette::named(&chosen.chosen)
        {
            look.palette = palette;
        }
        self.shell.keys = settings.keys;
        let kept = memory.arguments.iter();
        let kept = kept.map(|(tool, kept)| (tool.clone(), kept.arguments.clone()));
        self.shell.calls.recall(kept.collect());
        self.keep.is_recalled = true;
        self.keep.memory = memory;
        let effects =
            if self.keep.is_touched { Vec::new() } else { self.return_to_the_last_place() };
        self.keep.memory = self.place(self.keep.memory.clone());
        if let Some(first) = problems.first() {
            let more = match problems.len() - 1 {
                0 => String::new(),
                more => format!("  ({more} more, ? shows all)"),
            };
            self.shell.say_bad(format!("{first}{more}"));
        }
        self.shell.problems = problems;
        effects
    }

    fn return_to_the_last_place(&mut self) -> Vec<Effect> {
        let memory = self.keep.memory.clone();
        if let Some(sort) = Sort::named(&memory.sort) {
            self.tools.catalogue.sort_by(sort);
        }
        if !memory.filter.is_empty() {
            self.tools.find(&memory.filter);
            self.shell.say(format!("the tools are filtered by '{}'; Esc shows all", memory.filter));
        }
        View::named(&memory.view).map(|view| self.show(view)).unwrap_or_default()
    }

    /// What is to be remembered, when that is something else than before.
    pub fn unsaved(&mut self) -> Option<Memory> {
        if !self.keep.is_recalled {
            return None;
        }
        let made = self.shell.calls.made();
        if made == self.keep.made && self.is_where(&self.keep.memory) {
            return None;
        }
        let before = std::mem::take(&mut self.keep.memory);
        let mut memory = self.place(before);
        for call in self.shell.calls.since(self.keep.made) {
            let row = self.tools.catalogue.named(&call.tool);
            // Without a schema nobody can say what is secret.
            if let Some(row) = row {
                let schema = std::sync::Arc::clone(&row.tool.input_schema);
                memory.keep(&call.tool, &call.arguments, Some(schema));
            }
        }
        self.keep.made = made;
        self.keep.memory = memory.clone();
        Some(memory)
    }

    fn is_where(&self, memory: &Memory) -> bool {
        memory.view == self.shell.view.name()
            && memory.sort == self.tools.catalogue.sort.title()
            && memory.filter == self.filter()
            && memory.theme == self.colours()
    }

    /// The same memory, with where the console is now.
    fn place(&self, mut memory: Memory) -> Memory {
        memory.view = self.shell.view.name();
        self.tools.catalogue.sort.title().clone_into(&mut memory.sort);
        self.filter().clone_into(&mut memory.filter);
        memory.theme = self.colours();
        memory
    }

    /// A filter that is still being written is not yet one.
    fn filter(&self) -> &str {
        let catalogue = &self.tools.catalogue;
        if catalogue.is_filtering { "" } else { catalogue.filter.text() }
    }

    fn colours(&self) -> Option<Colours> {
        let (chosen, configured) = (self.shell.look.palette, self.keep.configured);
        // Who chose what is set anyway chose nothing.
        (chosen != configured).then(|| Colours {
            chosen: chosen.name().to_owned(),
            over: configured.name().to_owned(),
        })
    }
}
