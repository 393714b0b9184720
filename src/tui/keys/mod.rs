//! Keys as data: which key triggers which action, and where.
//!
//! Owns: the tables and the map that is made of them. The footer, the help and the palette are made
//! from that map, so they cannot be wrong.

pub mod action;
pub mod key_press;

use crate::tui::keys::action::Action;
use crate::tui::keys::key_press::KeyPress;
use crate::tui::layout::ViewId;
use crate::tui::views::{bench, form, history, inbox, offerings, servers, stats, tools, trace};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyContext {
    /// Everywhere, unless something nearer has the key.
    Anywhere,
    /// In lists and texts that scroll.
    Pane,
    Tools,
    ToolTree,
    /// In what calls of a tool gave.
    Result,
    ResultTable,
    Servers,
    /// In what crosses the wires.
    Trace,
    /// In the list of statistics and their details.
    Stats,
    Bench,
    /// In the calls of the past.
    History,
    /// In what servers offer beside tools.
    Offerings,
    /// While arguments of templates and prompts are filled in.
    OfferingForm,
    /// In the list of questions from servers.
    Inbox,
    /// While arguments are filled in.
    Form,
    FormLast,
    /// While arguments are filled in, in a line where nothing is typed.
    FormItems,
    FormLines,
    /// While arguments are filled in, in a field whose values are listed.
    FormChoice,
    MultilineText,
    /// While a question is answered.
    Answer,
    Text,
    /// While something is chosen or named that is to be used at once.
    Picker,
    Approval,
    Trust,
    /// In the list of everything that can be done.
    Palette,
    SaveCall,
    /// In the list of calls that run.
    Running,
    Problems,
    PinReview,
    /// While something lies over the screen.
    Overlay,
}

/// One key in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub key: KeyPress,
    pub action: Action,
    /// How the footer calls it; without a word it is in the help only.
    pub label: Option<&'static str>,
    /// What it does, for the help; empty for a second key of the same action.
    pub about: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub struct KeyTable {
    pub context: KeyContext,
    /// The heading in the help.
    pub title: &'static str,
    /// What holds there, the most important first; of two for one key the first counts.
    pub bindings: &'static [Binding],
}

pub const fn footer_binding(
    key: KeyPress,
    action: Action,
    word: &'static str,
    about: &'static str,
) -> Binding {
    Binding { key, action, label: Some(word), about }
}

/// A key that only the help shows.
pub const fn help_binding(key: KeyPress, action: Action, about: &'static str) -> Binding {
    Binding { key, action, label: None, about }
}

pub const fn alias_binding(key: KeyPress, action: Action) -> Binding {
    Binding { key, action, label: None, about: "" }
}

/// All places, as the help shows them.
pub const KEY_TABLES: &[KeyTable] = &[
    tools::TOOL_TREE,
    tools::TOOLS,
    tools::RESULT,
    tools::RESULT_TABLE,
    servers::SERVERS,
    trace::TRACE,
    stats::STATS,
    bench::BENCH,
    history::HISTORY,
    offerings::OFFERINGS,
    offerings::OFFERING_FORM,
    inbox::INBOX,
    form::FORM_LAST,
    form::FORM,
    form::FORM_ITEMS,
    form::FIELD_LINES,
    form::CHOICE,
    form::LINES,
    inbox::ANSWER,
    inbox::APPROVAL,
    inbox::TRUST,
    TEXT,
    PICKER,
    PALETTE,
    SAVE_CALL,
    RUNNING,
    PROBLEMS,
    PIN_REVIEW,
    OVERLAY,
    PANE,
    ANYWHERE,
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_has_two_meanings_in_one_place() {
        for place in KEY_TABLES {
            let mut seen = HashSet::new();
            for binding in place.bindings {
                assert!(seen.insert(binding.key), "{:?}: {binding:?}", place.context);
            }
        }
    }

    #[test]
    fn what_a_key_does_is_said_once_for_each_action() {
        for place in KEY_TABLES {
            for binding in place.bindings {
                let text = place
                    .bindings
                    .iter()
                    .filter(|other| other.action == binding.action && !other.about.is_empty());
                assert_eq!(text.count(), 1, "{:?}: {binding:?}", place.context);
            }
        }
    }
}

pub const TEXT: KeyTable = KeyTable {
    context: KeyContext::Text,
    title: "Text input",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "open", "open what is chosen"),
        footer_binding(KeyPress::Esc, Action::Back, "clear", "clear the text and go back"),
        help_binding(KeyPress::Down, Action::Down, "down"),
        help_binding(KeyPress::Up, Action::Up, "up"),
    ],
};

pub const PICKER: KeyTable = KeyTable {
    context: KeyContext::Picker,
    title: "Choosing",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "select", "select"),
        footer_binding(KeyPress::Esc, Action::Back, "cancel", "go back without changes"),
        help_binding(KeyPress::Down, Action::Down, "down"),
        help_binding(KeyPress::Up, Action::Up, "up"),
        help_binding(KeyPress::PageDown, Action::PageDown, "page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "page up"),
    ],
};

pub const OVERLAY: KeyTable = KeyTable {
    context: KeyContext::Overlay,
    title: "Windows",
    bindings: &[
        footer_binding(KeyPress::Esc, Action::Back, "close", "close"),
        alias_binding(KeyPress::Char('q'), Action::Back),
        alias_binding(KeyPress::Char('n'), Action::Back),
        alias_binding(KeyPress::Char('?'), Action::Back),
        help_binding(KeyPress::Char('y'), Action::Yes, "yes"),
    ],
};

pub const PALETTE: KeyTable = KeyTable {
    context: KeyContext::Palette,
    title: "Commands",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "run", "run the chosen command"),
        footer_binding(KeyPress::Esc, Action::Back, "close", "close"),
        help_binding(KeyPress::Down, Action::Down, "down"),
        alias_binding(KeyPress::Ctrl('n'), Action::Down),
        help_binding(KeyPress::Up, Action::Up, "up"),
        alias_binding(KeyPress::Ctrl('p'), Action::Up),
        help_binding(KeyPress::PageDown, Action::PageDown, "page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "page up"),
    ],
};

pub const SAVE_CALL: KeyTable = KeyTable {
    context: KeyContext::SaveCall,
    title: "Saving a call",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "save", "save the call under this name"),
        footer_binding(KeyPress::Esc, Action::Back, "cancel", "go back without saving"),
    ],
};

pub const RUNNING: KeyTable = KeyTable {
    context: KeyContext::Running,
    title: "Running calls",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Stop, "cancel", "cancel the chosen call"),
        alias_binding(KeyPress::Char('x'), Action::Stop),
        alias_binding(KeyPress::Delete, Action::Stop),
    ],
};

pub const PROBLEMS: KeyTable = KeyTable {
    context: KeyContext::Problems,
    title: "Configuration problems",
    bindings: &[footer_binding(KeyPress::Char('y'), Action::Copy, "copy", "copy the whole list")],
};

pub const PIN_REVIEW: KeyTable = KeyTable {
    context: KeyContext::PinReview,
    title: "Pin",
    bindings: &[
        footer_binding(
            KeyPress::Char('y'),
            Action::Yes,
            "accept",
            "pin exactly this (after reading to the end)",
        ),
        help_binding(KeyPress::Char(' '), Action::PageDown, "page down"),
    ],
};

pub const PANE: KeyTable = KeyTable {
    context: KeyContext::Pane,
    title: "Panes",
    bindings: &[
        help_binding(KeyPress::Char('j'), Action::Down, "down"),
        alias_binding(KeyPress::Down, Action::Down),
        help_binding(KeyPress::Char('k'), Action::Up, "up"),
        alias_binding(KeyPress::Up, Action::Up),
        help_binding(KeyPress::PageDown, Action::PageDown, "page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "page up"),
        help_binding(KeyPress::Char('g'), Action::Top, "go to the top"),
        alias_binding(KeyPress::Home, Action::Top),
        help_binding(KeyPress::Char('G'), Action::Bottom, "go to the end"),
        alias_binding(KeyPress::End, Action::Bottom),
    ],
};

pub const ANYWHERE: KeyTable = KeyTable {
    context: KeyContext::Anywhere,
    title: "Everywhere",
    bindings: &[
        footer_binding(KeyPress::Tab, Action::NextPane, "pane", "next pane"),
        help_binding(KeyPress::BackTab, Action::PreviousPane, "previous pane"),
        help_binding(KeyPress::Char('z'), Action::Zoom, "zoom the pane"),
        footer_binding(KeyPress::Char(':'), Action::Palette, "menu", "show all commands"),
        alias_binding(KeyPress::Ctrl('p'), Action::Palette),
        help_binding(KeyPress::Char('<'), Action::NarrowPane, "left pane narrower"),
        help_binding(KeyPress::Char('>'), Action::WidenPane, "left pane wider"),
        help_binding(KeyPress::Char('-'), Action::ShrinkPane, "upper pane smaller"),
        help_binding(KeyPress::Char('+'), Action::GrowPane, "upper pane larger"),
        help_binding(KeyPress::Char('='), Action::ResetPanes, "reset pane sizes"),
        help_binding(KeyPress::Ctrl('x'), Action::Running, "show running calls"),
        footer_binding(KeyPress::Char('y'), Action::Copy, "copy", "copy what is shown"),
        help_binding(KeyPress::Char('1'), Action::Show(ViewId::Tools), "show tools"),
        help_binding(KeyPress::Char('2'), Action::Show(ViewId::Servers), "show servers"),
        help_binding(KeyPress::Char('3'), Action::Show(ViewId::Trace), "show the trace"),
        help_binding(KeyPress::Char('4'), Action::Show(ViewId::Stats), "show statistics"),
        help_binding(KeyPress::Char('5'), Action::Show(ViewId::Bench), "show the benchmark"),
        help_binding(KeyPress::Char('6'), Action::Show(ViewId::History), "show the history"),
        help_binding(
            KeyPress::Char('7'),
            Action::Show(ViewId::Offerings),
            "show resources and prompts",
        ),
        help_binding(KeyPress::Char('8'), Action::Show(ViewId::Inbox), "show the inbox"),
        alias_binding(KeyPress::Ctrl('q'), Action::Show(ViewId::Inbox)),
        help_binding(KeyPress::Char('U'), Action::Reload, "reload the configuration files"),
        footer_binding(
            KeyPress::Char('W'),
            Action::Problems,
            "problems",
            "show configuration file problems",
        ),
        footer_binding(KeyPress::Char('!'), Action::Trust, "trust", "review and trust the project"),
        help_binding(KeyPress::Esc, Action::Back, "close or go back"),
        help_binding(
            KeyPress::Ctrl('c'),
            Action::Cancel,
            "cancel the newest call; with none ask whether to quit",
        ),
        help_binding(KeyPress::Ctrl('l'), Action::Redraw, "redraw"),
        help_binding(KeyPress::Ctrl('z'), Action::Suspend, "suspend (fg returns)"),
        footer_binding(KeyPress::Char('?'), Action::Help, "help", "show the keys"),
        alias_binding(KeyPress::F(1), Action::Help),
        footer_binding(KeyPress::Char('q'), Action::Quit, "quit", "quit"),
    ],
};

/// The keys of every context.
#[derive(Debug, Clone)]
pub struct Keymap {
    contexts: Vec<(KeyContext, Vec<Binding>)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let places =
            KEY_TABLES.iter().map(|place| (place.context, place.bindings.to_vec())).collect();
        Self { contexts: places }
    }
}

impl Keymap {
    pub fn bindings(&self, when: KeyContext) -> &[Binding] {
        let place = self.contexts.iter().find(|(place, _)| *place == when);
        place.map_or(&[], |(_, bindings)| bindings)
    }

    pub fn bindings_mut(&mut self, when: KeyContext) -> Option<&mut Vec<Binding>> {
        let place = self.contexts.iter_mut().find(|(place, _)| *place == when);
        place.map(|(_, bindings)| bindings)
    }

    pub fn action(&self, key: KeyPress, places: &[KeyContext]) -> Option<Action> {
        places.iter().find_map(|place| {
            self.bindings(*place).iter().find(|binding| binding.key == key).map(|b| b.action)
        })
    }

    pub fn key_of(&self, action: Action, places: &[KeyContext]) -> Option<KeyPress> {
        places.iter().find_map(|place| {
            let mut own = self.bindings(*place).iter().filter(|b| b.action == action);
            own.find(|b| self.action(b.key, places) == Some(action)).map(|b| b.key)
        })
    }
}

/// Rebinds a key in one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remap {
    pub context: KeyContext,
    pub key: KeyPress,
    /// The new action; `None` unbinds the key.
    pub action: Option<Action>,
}

impl KeyContext {
    /// The name in `console.yaml`. It is a contract: a variant may be renamed, its name may not.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::Pane => "pane",
            Self::Tools => "tools",
            Self::ToolTree => "tree",
            Self::Result => "result",
            Self::ResultTable => "table",
            Self::Servers => "servers",
            Self::Trace => "trace",
            Self::Stats => "stats",
            Self::Bench => "bench",
            Self::History => "history",
            Self::Offerings => "offers",
            Self::OfferingForm => "asking",
            Self::Inbox => "inbox",
            Self::Form => "form",
            Self::FormLast => "last-field",
            Self::FormItems => "items",
            Self::FormLines => "field-lines",
            Self::FormChoice => "field-choice",
            Self::MultilineText => "lines",
            Self::Answer => "answer",
            Self::Text => "text",
            Self::Picker => "choosing",
            Self::Approval => "approval",
            Self::Trust => "trust",
            Self::Palette => "palette",
            Self::Running => "running",
            Self::Problems => "problems",
            Self::PinReview => "pin",
            Self::SaveCall => "save-call",
            Self::Overlay => "overlay",
        }
    }

    /// The context with this name, if it has a table of keys.
    pub fn from_name(name: &str) -> Option<Self> {
        KEY_TABLES.iter().map(|place| place.context).find(|when| when.name() == name)
    }
}

impl Action {
    pub fn from_name(name: &str) -> Option<Self> {
        let bindings = KEY_TABLES.iter().flat_map(|place| place.bindings);
        bindings.map(|binding| binding.action).find(|action| action.name() == name)
    }

    /// How the tables call it: its word in the footer and what it does. Those of this place, else
    /// of any.
    fn labels(self, when: KeyContext) -> (Option<&'static str>, &'static str) {
        let here = KEY_TABLES.iter().filter(|place| place.context == when);
        let bindings = here.chain(KEY_TABLES).flat_map(|place| place.bindings);
        let mut described =
            bindings.filter(|binding| binding.action == self && !binding.about.is_empty());
        described.next().map_or((None, ""), |binding| (binding.label, binding.about))
    }
}

impl Keymap {
    /// Rebinds a key. Returns the action that lost its last key in that context.
    pub fn remap(&mut self, remap: Remap) -> Option<Action> {
        let Remap { context: when, key, action } = remap;
        let bindings = self.bindings_mut(when)?;
        let before = bindings.iter().position(|binding| binding.key == key);
        let lost = before.map(|at| bindings.remove(at)).filter(|lost| Some(lost.action) != action);
        if let Some(lost) = lost
            && let Some(successor) = bindings.iter_mut().find(|b| b.action == lost.action)
            && successor.about.is_empty()
        {
            (successor.label, successor.about) = (lost.label, lost.about);
        }
        let orphan = lost.map(|lost| lost.action);
        let orphan = orphan.filter(|lost| !bindings.iter().any(|b| b.action == *lost));
        if let Some(action) = action {
            let (word, about) = action.labels(when);
            let first = bindings.iter().position(|binding| binding.action == action);
            // A person's own key is the one that is shown.
            for other in bindings.iter_mut().filter(|other| other.action == action) {
                (other.label, other.about) = (None, "");
            }
            bindings.insert(first.unwrap_or(0), Binding { key, action, label: word, about });
        }
        orphan
    }
}

#[cfg(test)]
mod remap_tests {
    use super::*;

    fn remap(when: KeyContext, key: KeyPress, action: Option<Action>) -> (Keymap, Option<Action>) {
        let mut keys = Keymap::default();
        let orphan = keys.remap(Remap { context: when, key, action });
        (keys, orphan)
    }

    #[test]
    fn every_action_has_a_name_that_leads_back_to_it() {
        for binding in KEY_TABLES.iter().flat_map(|place| place.bindings) {
            let name = binding.action.name();
            assert_eq!(Action::from_name(&name), Some(binding.action), "{name}");
        }
        for place in KEY_TABLES {
            assert_eq!(KeyContext::from_name(place.context.name()), Some(place.context));
        }
    }

    #[test]
    fn a_key_of_ones_own_is_the_one_that_is_shown() {
        let (keys, orphan) = remap(KeyContext::Tools, KeyPress::Char('c'), Some(Action::Fill));
        assert_eq!(orphan, None);
        assert_eq!(keys.key_of(Action::Fill, &[KeyContext::Tools]), Some(KeyPress::Char('c')));
        assert_eq!(keys.action(KeyPress::Enter, &[KeyContext::Tools]), Some(Action::Fill));
        let shown: Vec<KeyPress> = keys
            .bindings(KeyContext::Tools)
            .iter()
            .filter(|binding| binding.action == Action::Fill && binding.label.is_some())
            .map(|binding| binding.key)
            .collect();
        assert_eq!(shown, [KeyPress::Char('c')]);
    }

    #[test]
    fn what_loses_its_last_key_is_told_and_a_second_key_inherits_the_words() {
        let (keys, orphan) = remap(KeyContext::Tools, KeyPress::Char('s'), Some(Action::Fill));
        assert_eq!(orphan, Some(Action::Sort));
        assert_eq!(keys.key_of(Action::Sort, &[KeyContext::Tools]), None);
        let (keys, orphan) = remap(KeyContext::Tools, KeyPress::Enter, None);
        assert_eq!(orphan, None);
        let successor =
            keys.bindings(KeyContext::Tools).iter().find(|b| b.action == Action::Fill).unwrap();
        assert_eq!((successor.key, successor.label), (KeyPress::Char('e'), Some("call")));
    }
}
