//! Keys as data: which key triggers which action, and where.
//!
//! Owns: the tables and the map that is made of them. The footer, the help and the palette are made
//! from that map, so they cannot be wrong.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::tui::keys::KeyPress::{
    BackTab, Char, Ctrl, Delete, Down, End, Enter, Esc, F, Home, PageDown, PageUp, Tab, Up,
};
use crate::tui::layout::ViewId;
use crate::tui::views::{bench, form, history, inbox, offerings, servers, stats, tools, trace};

/// One key in one place, by default or as a person bound it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub key: KeyPress,
    pub action: Action,
    /// How the footer calls it; without a word it is in the help only.
    pub label: Option<&'static str>,
    /// What it does, for the help; empty for a second key of the same action.
    pub about: &'static str,
    /// Whether it does something with the chosen row of a list.
    pub needs_row: bool,
}

/// What a table says of an action: its keys, the one that is shown first.
#[derive(Debug, Clone, Copy)]
pub struct KeyRow {
    pub keys: &'static [KeyPress],
    pub action: Action,
    /// How the footer calls it; `None` where only the help shows it.
    label: Option<&'static str>,
    about: &'static str,
    needs_row: bool,
}

pub const fn row(
    keys: &'static [KeyPress],
    action: Action,
    label: &'static str,
    about: &'static str,
) -> KeyRow {
    let label = if label.is_empty() { None } else { Some(label) };
    KeyRow { keys, action, label, about, needs_row: false }
}

/// What is done with the chosen row of the list in front; offered while there is one.
pub const fn on_row(
    keys: &'static [KeyPress],
    action: Action,
    label: &'static str,
    about: &'static str,
) -> KeyRow {
    KeyRow { needs_row: true, ..row(keys, action, label, about) }
}

impl KeyRow {
    fn bindings(&self) -> impl Iterator<Item = Binding> + '_ {
        self.keys.iter().enumerate().map(|(at, &key)| {
            let (label, about) = if at == 0 { (self.label, self.about) } else { (None, "") };
            Binding { key, action: self.action, label, about, needs_row: self.needs_row }
        })
    }
}

/// What holds in one place, the most important first; of two for one key the first counts.
#[derive(Debug, Clone, Copy)]
pub struct KeyTable {
    /// The name in `console.yaml`, which is a contract.
    pub name: &'static str,
    pub title: &'static str,
    pub rows: &'static [KeyRow],
}

/// A place where keys hold, by the table that says which.
pub type KeyContext = &'static KeyTable;

impl PartialEq for KeyTable {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// All places, as the help shows them.
pub const KEY_TABLES: &[KeyContext] = &[
    &tools::TOOL_TREE,
    &tools::TOOLS,
    &tools::RESULT,
    &tools::RESULT_TABLE,
    &servers::SERVERS,
    &trace::TRACE,
    &stats::STATS,
    &bench::BENCH,
    &history::HISTORY,
    &offerings::OFFERINGS,
    &offerings::OFFERING_FORM,
    &inbox::INBOX,
    &form::FORM_LAST,
    &form::FORM,
    &form::FORM_ITEMS,
    &form::FIELD_LINES,
    &form::CHOICE,
    &form::LINES,
    &inbox::QUESTION,
    &inbox::ANSWER,
    &inbox::APPROVAL,
    &inbox::held::BREAKPOINT,
    &inbox::TRUST,
    &TEXT,
    &PICKER,
    &HELP,
    &PALETTE,
    &SAVE_CALL,
    &RUNNING,
    &PROBLEMS,
    &PIN_REVIEW,
    &OVERLAY,
    &PANE,
    &ANYWHERE,
];

/// Something a person can do. What it does in a place is said where it is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Action {
    Show(ViewId),
    /// Start a program of `console.yaml`, by its place in [`Keymap::programs`].
    Program(u8),
    NextPane,
    PreviousPane,
    /// Let the focused pane fill the screen, or give that back.
    Zoom,
    NarrowPane,
    WidenPane,
    ShrinkPane,
    GrowPane,
    ResetPanes,
    /// Show everything that can be done, to choose from.
    Palette,
    Filter,
    NextMatch,
    /// Go to the match before.
    PreviousMatch,
    /// Write a jq filter that the result is shown through.
    Query,
    CopyPath,
    /// Choose the next order of the list.
    Sort,
    /// Puts tools under other headings.
    Group,
    Wire,
    Down,
    /// Move up by one line.
    Up,
    PageDown,
    PageUp,
    /// Go to the first line of the list or text.
    Top,
    /// Go to the last line of the list or text.
    Bottom,
    Open,
    Fill,
    Run,
    /// Check it, and do nothing.
    Validate,
    PreviousField,
    NextField,
    PreviousChoice,
    NextChoice,
    PreviousColumn,
    NextColumn,
    /// Leave the field out of the arguments.
    Unset,
    /// Send `null` for the field.
    Null,
    Add,
    Remove,
    NewLine,
    Editor,
    SwitchForm,
    Copy,
    CopyCommand,
    /// Write what is shown to a file.
    Export,
    SaveCall,
    SaveTest,
    ChangeFormat,
    /// Switch the tool's tab: details, schema, raw.
    Detail,
    /// Show the calls that run, to stop one of them.
    Running,
    Pause,
    /// Stay at the end, or not.
    Follow,
    /// Another scale: equal lengths, or equal ratios.
    Scale,
    Window,
    AllProjects,
    /// Count from now on, or clear what was collected.
    Reset,
    Bench,
    /// Choose the tool that is measured.
    TargetA,
    /// Choose the tool to compare with.
    TargetB,
    Stop,
    /// Repeat a past call with the same arguments.
    Rerun,
    /// Call again after a look at the arguments.
    RerunEdited,
    Mark,
    Diff,
    /// Ask again: the list, the server.
    Refresh,
    Connect,
    /// End the connection and start it again.
    Restart,
    Log,
    Level,
    ShowTools,
    ShowTrace,
    /// Show its calls of the past.
    ShowHistory,
    /// Watch or unwatch the selected resource.
    Subscribe,
    /// Allow this one call, or trust the project.
    Yes,
    YesForSession,
    /// Say yes as the author: code may change without asking again.
    YesAsAuthor,
    /// Deny the call, refuse the project or decline the question.
    No,
    /// Refuse, and write why.
    NoBecause,
    /// Answer in the tool's place.
    Answer,
    /// Cancel the question of a server without an answer.
    CancelQuestion,
    Trust,
    /// Use the background host of the configuration.
    Attach,
    /// Read the configuration files again.
    Reload,
    /// Show what is wrong with the configuration files.
    Problems,
    Pin,
    /// Stop calls of the tool for a person, or not.
    Breakpoint,
    /// Show the keys of the view and everywhere.
    Help,
    Back,
    /// Stop the newest call, or leave the console.
    Cancel,
    /// Clear the terminal and draw the screen again.
    Redraw,
    /// Give the terminal back to the shell for a while.
    Suspend,
    /// Quit, after a question when something is running.
    Quit,
}

impl Action {
    /// The name in `console.yaml` and in the list of commands: the variant's in kebab-case. It is a
    /// contract, so a variant keeps its name.
    pub fn name(self) -> String {
        match self {
            Self::Show(view) => format!("view-{}", view.name()),
            other => <&str>::from(other).to_owned(),
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        let mut rows = KEY_TABLES.iter().flat_map(|table| table.rows);
        rows.find(|row| row.action.name() == name).map(|row| row.action)
    }

    /// What the table of this place says of it, else that of any.
    fn row(self, when: KeyContext) -> KeyRow {
        let mut rows = when.rows.iter().chain(KEY_TABLES.iter().flat_map(|table| table.rows));
        let program = row(&[], self, "", "start a program of console.yaml");
        rows.find(|row| row.action == self).copied().unwrap_or(program)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyPress {
    /// A character, as it was typed: `A` is shift and `a`.
    Char(char),
    /// Control and a letter, in lower case.
    Ctrl(char),
    Alt(char),
    /// A function key, from F1 on.
    F(u8),
    Enter,
    AltEnter,
    Tab,
    BackTab,
    Esc,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

impl KeyPress {
    /// The key of a terminal event; `None` for releases, repeats and keys that cannot be bound.
    pub fn from_event(event: &KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        Some(match event.code {
            // AltGr is reported as both: it produces characters.
            KeyCode::Char(c) if ctrl && !alt => Self::Ctrl(c.to_ascii_lowercase()),
            KeyCode::Char(c) if alt && !ctrl => Self::Alt(c),
            KeyCode::Char(c) => Self::Char(c),
            KeyCode::F(number) => Self::F(number),
            KeyCode::Enter if alt => Self::AltEnter,
            // Terminals that cannot tell it from Enter send a line feed, or nothing else.
            KeyCode::Enter if ctrl => Self::Ctrl('j'),
            other => NAMES.iter().find(|(_, code, ..)| *code == other)?.0,
        })
    }
}

impl std::str::FromStr for KeyPress {
    type Err = ();

    /// Reads a key as it is shown (`F5`, `^P`, `Del`), or as it is said: `ctrl-p`, `alt-x`,
    /// `space`, `page-up`. One character stands for itself.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut letters = text.chars();
        if let (Some(only), None) = (letters.next(), letters.next()) {
            return if only.is_control() { Err(()) } else { Ok(Self::Char(only)) };
        }
        let lower = text.to_ascii_lowercase().replace(['+', '_'], "-");
        let one = |rest: &str| {
            let mut letters = rest.chars();
            letters.next().filter(|_| letters.next().is_none())
        };
        for control in ["^", "ctrl-", "c-"] {
            if let Some(letter) = lower.strip_prefix(control).and_then(one) {
                return Ok(Self::Ctrl(letter));
            }
        }
        for alt in ["alt-", "m-"] {
            // What alt is pressed with may be a capital.
            let rest = lower.strip_prefix(alt).and_then(|rest| text.get(text.len() - rest.len()..));
            if let Some(letter) = rest.and_then(one) {
                return Ok(Self::Alt(letter));
            }
        }
        if let Some(number) = lower.strip_prefix('f').and_then(|number| number.parse().ok()) {
            return if (1..=12).contains(&number) { Ok(Self::F(number)) } else { Err(()) };
        }
        let named = NAMES.iter().find(|(.., shown, others)| {
            shown.eq_ignore_ascii_case(&lower) || others.contains(&&*lower)
        });
        named.map(|(key, ..)| *key).ok_or(())
    }
}

/// The keys with names: what the terminal calls them, how they are shown, and how else they may be
/// written.
const NAMES: [(KeyPress, KeyCode, &str, &[&str]); 16] = [
    (KeyPress::Char(' '), KeyCode::Char(' '), "Space", &[]),
    (KeyPress::Enter, KeyCode::Enter, "Enter", &["return"]),
    (KeyPress::AltEnter, KeyCode::Enter, "Alt-Enter", &[]),
    (KeyPress::Tab, KeyCode::Tab, "Tab", &[]),
    (KeyPress::BackTab, KeyCode::BackTab, "Shift-Tab", &["backtab"]),
    (KeyPress::Esc, KeyCode::Esc, "Esc", &["escape"]),
    (KeyPress::Backspace, KeyCode::Backspace, "Backspace", &[]),
    (KeyPress::Delete, KeyCode::Delete, "Del", &["delete"]),
    (KeyPress::Up, KeyCode::Up, "Up", &[]),
    (KeyPress::Down, KeyCode::Down, "Down", &[]),
    (KeyPress::Left, KeyCode::Left, "Left", &[]),
    (KeyPress::Right, KeyCode::Right, "Right", &[]),
    (KeyPress::Home, KeyCode::Home, "Home", &[]),
    (KeyPress::End, KeyCode::End, "End", &[]),
    (KeyPress::PageUp, KeyCode::PageUp, "PgUp", &["page-up", "pageup"]),
    (KeyPress::PageDown, KeyCode::PageDown, "PgDn", &["page-down", "pagedown"]),
];

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, _, name, _)) = NAMES.iter().find(|(key, ..)| key == self) {
            return f.write_str(name);
        }
        match self {
            Self::Char(c) => write!(f, "{c}"),
            Self::Ctrl(c) => write!(f, "^{}", c.to_ascii_uppercase()),
            Self::Alt(c) => write!(f, "Alt-{c}"),
            Self::F(number) => write!(f, "F{number}"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[rustfmt::skip]
pub const TEXT: KeyTable = KeyTable { name: "text", title: "Text input", rows: &[
    row(&[Enter], Action::Open, "open", "open what is chosen"),
    row(&[Esc], Action::Back, "clear", "clear the text and go back"),
    row(&[Down], Action::Down, "", "down"),
    row(&[Up], Action::Up, "", "up"),
] };

#[rustfmt::skip]
pub const PICKER: KeyTable = KeyTable { name: "choosing", title: "Choosing", rows: &[
    row(&[Enter], Action::Open, "select", "select"),
    row(&[Esc], Action::Back, "cancel", "go back without changes"),
    row(&[Down], Action::Down, "", "down"),
    row(&[Up], Action::Up, "", "up"),
    row(&[PageDown], Action::PageDown, "", "page down"),
    row(&[PageUp], Action::PageUp, "", "page up"),
] };

#[rustfmt::skip]
pub const OVERLAY: KeyTable = KeyTable { name: "overlay", title: "Windows", rows: &[
    row(&[Esc, Char('q'), Char('n'), Char('?')], Action::Back, "close", "close"),
    row(&[Char('y')], Action::Yes, "", "yes"),
] };

#[rustfmt::skip]
pub const HELP: KeyTable = KeyTable { name: "help", title: "Help", rows: &[
    row(&[Char('/')], Action::Filter, "search", "search in the help"),
] };

#[rustfmt::skip]
pub const PALETTE: KeyTable = KeyTable { name: "palette", title: "Commands", rows: &[
    row(&[Enter], Action::Open, "run", "run the chosen command"),
    row(&[Esc], Action::Back, "close", "close"),
    row(&[Down, Ctrl('n')], Action::Down, "", "down"),
    row(&[Up, Ctrl('p')], Action::Up, "", "up"),
    row(&[PageDown], Action::PageDown, "", "page down"),
    row(&[PageUp], Action::PageUp, "", "page up"),
] };

#[rustfmt::skip]
pub const SAVE_CALL: KeyTable = KeyTable { name: "save-call", title: "Saving a call", rows: &[
    row(&[Enter], Action::Open, "save", "save the call under this name"),
    row(&[Esc], Action::Back, "cancel", "go back without saving"),
] };

#[rustfmt::skip]
pub const RUNNING: KeyTable = KeyTable { name: "running", title: "Running calls", rows: &[
    row(&[Enter, Char('x'), Delete], Action::Stop, "cancel", "cancel the chosen call"),
] };

#[rustfmt::skip]
pub const PROBLEMS: KeyTable = KeyTable { name: "problems", title: "Configuration problems", rows: &[
    row(&[Char('y')], Action::Copy, "copy", "copy the whole list"),
] };

#[rustfmt::skip]
pub const PIN_REVIEW: KeyTable = KeyTable { name: "pin", title: "Pin", rows: &[
    row(&[Char('y')], Action::Yes, "accept", "pin exactly this (after reading to the end)"),
    row(&[Char(' ')], Action::PageDown, "", "page down"),
] };

#[rustfmt::skip]
pub const PANE: KeyTable = KeyTable { name: "pane", title: "Panes", rows: &[
    row(&[Char('j'), Down], Action::Down, "", "down"),
    row(&[Char('k'), Up], Action::Up, "", "up"),
    row(&[PageDown], Action::PageDown, "", "page down"),
    row(&[PageUp], Action::PageUp, "", "page up"),
    row(&[Char('g'), Home], Action::Top, "", "go to the top"),
    row(&[Char('G'), End], Action::Bottom, "", "go to the end"),
] };

#[rustfmt::skip]
pub const ANYWHERE: KeyTable = KeyTable { name: "anywhere", title: "Everywhere", rows: &[
    row(&[Tab], Action::NextPane, "pane", "next pane"),
    row(&[BackTab], Action::PreviousPane, "", "previous pane"),
    row(&[Char('z')], Action::Zoom, "", "zoom the pane"),
    row(&[Char(':'), Ctrl('p')], Action::Palette, "menu", "show all commands"),
    row(&[Char('<')], Action::NarrowPane, "", "left pane narrower"),
    row(&[Char('>')], Action::WidenPane, "", "left pane wider"),
    row(&[Char('-')], Action::ShrinkPane, "", "upper pane smaller"),
    row(&[Char('+')], Action::GrowPane, "", "upper pane larger"),
    row(&[Char('=')], Action::ResetPanes, "", "reset pane sizes"),
    row(&[Ctrl('x')], Action::Running, "", "show running calls"),
    on_row(&[Char('y')], Action::Copy, "copy", "copy what is shown"),
    row(&[Char('1')], Action::Show(ViewId::Tools), "", "show tools"),
    row(&[Char('2')], Action::Show(ViewId::Servers), "", "show servers"),
    row(&[Char('3')], Action::Show(ViewId::Trace), "", "show the trace"),
    row(&[Char('4')], Action::Show(ViewId::Stats), "", "show statistics"),
    row(&[Char('5')], Action::Show(ViewId::Bench), "", "show the benchmark"),
    row(&[Char('6')], Action::Show(ViewId::History), "", "show the history"),
    row(&[Char('7')], Action::Show(ViewId::Offerings), "", "show resources and prompts"),
    row(&[Char('8'), Ctrl('q')], Action::Show(ViewId::Inbox), "", "show the inbox"),
    row(&[Char('U')], Action::Reload, "", "reload the configuration files"),
    row(&[Char('W')], Action::Problems, "problems", "show configuration file problems"),
    row(&[Char('!')], Action::Trust, "trust", "review and trust the project"),
    row(&[Esc], Action::Back, "", "close or go back"),
    row(&[Ctrl('c')], Action::Cancel, "", "cancel the newest call; with none ask whether to quit"),
    row(&[Ctrl('l')], Action::Redraw, "", "redraw"),
    row(&[Ctrl('z')], Action::Suspend, "", "suspend (fg returns)"),
    row(&[Char('?'), F(1)], Action::Help, "help", "show the keys"),
    row(&[Char('q')], Action::Quit, "quit", "quit"),
] };

#[derive(Debug, Clone)]
pub struct Keymap {
    contexts: Vec<(KeyContext, Vec<Binding>)>,
    /// The programs that keys are bound to, each with its arguments.
    pub programs: Vec<Vec<String>>,
}

impl Default for Keymap {
    fn default() -> Self {
        let bindings = |table: KeyContext| table.rows.iter().flat_map(KeyRow::bindings).collect();
        let contexts = KEY_TABLES.iter().map(|table| (*table, bindings(table)));
        Self { contexts: contexts.collect(), programs: Vec::new() }
    }
}

impl Keymap {
    pub fn bindings(&self, when: KeyContext) -> &[Binding] {
        let place = self.contexts.iter().find(|(place, _)| *place == when);
        place.map_or(&[], |(_, bindings)| bindings)
    }

    pub fn action(&self, key: KeyPress, places: &[KeyContext]) -> Option<Action> {
        places.iter().find_map(|place| {
            self.bindings(place).iter().find(|binding| binding.key == key).map(|b| b.action)
        })
    }

    pub fn key_of(&self, action: Action, places: &[KeyContext]) -> Option<KeyPress> {
        places.iter().find_map(|place| {
            let mut own = self.bindings(place).iter().filter(|b| b.action == action);
            own.find(|b| self.action(b.key, places) == Some(action)).map(|b| b.key)
        })
    }

    /// Rebinds a key, or unbinds it without an action. Returns the action that lost its last key in
    /// that context.
    pub fn remap(
        &mut self,
        when: KeyContext,
        key: KeyPress,
        action: Option<Action>,
    ) -> Option<Action> {
        let (_, bindings) = self.contexts.iter_mut().find(|(place, _)| *place == when)?;
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
            let first = bindings.iter().position(|binding| binding.action == action);
            // A person's own key is the one that is shown.
            for other in bindings.iter_mut().filter(|other| other.action == action) {
                (other.label, other.about) = (None, "");
            }
            let KeyRow { label, about, needs_row, .. } = action.row(when);
            let own = Binding { key, action, label, about, needs_row };
            bindings.insert(first.unwrap_or(0), own);
        }
        orphan
    }
}

/// The place with this name in `console.yaml`.
pub fn context_of(name: &str) -> Option<KeyContext> {
    KEY_TABLES.iter().find(|table| table.name == name).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_has_two_meanings_in_one_place() {
        for place in KEY_TABLES {
            let mut seen = HashSet::new();
            for binding in place.rows.iter().flat_map(KeyRow::bindings) {
                assert!(seen.insert(binding.key), "{}: {binding:?}", place.name);
            }
        }
    }

    #[test]
    fn what_a_key_does_is_said_once_for_each_action() {
        for place in KEY_TABLES {
            let mut seen = HashSet::new();
            for row in place.rows {
                assert!(seen.insert(row.action), "{}: {row:?}", place.name);
                assert!(!row.about.is_empty() && !row.keys.is_empty(), "{row:?}");
            }
        }
    }
}

#[cfg(test)]
mod remap_tests {
    use super::*;

    fn remap(when: KeyContext, key: KeyPress, action: Option<Action>) -> (Keymap, Option<Action>) {
        let mut keys = Keymap::default();
        let orphan = keys.remap(when, key, action);
        (keys, orphan)
    }

    #[test]
    fn every_action_has_a_name_that_leads_back_to_it() {
        for row in KEY_TABLES.iter().flat_map(|place| place.rows) {
            let name = row.action.name();
            assert_eq!(Action::from_name(&name), Some(row.action), "{name}");
        }
        for place in KEY_TABLES {
            assert_eq!(context_of(place.name), Some(*place));
        }
    }

    #[test]
    fn a_key_of_ones_own_is_the_one_that_is_shown() {
        let (keys, orphan) = remap(&tools::TOOLS, KeyPress::Char('c'), Some(Action::Fill));
        assert_eq!(orphan, None);
        assert_eq!(keys.key_of(Action::Fill, &[&tools::TOOLS]), Some(KeyPress::Char('c')));
        assert_eq!(keys.action(KeyPress::Enter, &[&tools::TOOLS]), Some(Action::Fill));
        let shown: Vec<KeyPress> = keys
            .bindings(&tools::TOOLS)
            .iter()
            .filter(|binding| binding.action == Action::Fill && binding.label.is_some())
            .map(|binding| binding.key)
            .collect();
        assert_eq!(shown, [KeyPress::Char('c')]);
    }

    #[test]
    fn what_loses_its_last_key_is_told_and_a_second_key_inherits_the_words() {
        let (keys, orphan) = remap(&tools::TOOLS, KeyPress::Char('s'), Some(Action::Fill));
        assert_eq!(orphan, Some(Action::Sort));
        assert_eq!(keys.key_of(Action::Sort, &[&tools::TOOLS]), None);
        let (keys, orphan) = remap(&tools::TOOLS, KeyPress::Enter, None);
        assert_eq!(orphan, None);
        let successor =
            keys.bindings(&tools::TOOLS).iter().find(|b| b.action == Action::Fill).unwrap();
        assert_eq!((successor.key, successor.label), (KeyPress::Char('e'), Some("call")));
    }
}

#[cfg(test)]
mod page_tests {
    use std::fmt::Write as _;

    use super::*;

    fn page() -> String {
        let mut page =
            "# Keys of the console\n\nGenerated from the tables of the console. `keys` of \
                        [console.yaml](console-yaml.md) binds others.\n"
                .to_owned();
        for KeyTable { name, title, rows } in KEY_TABLES {
            let head = "| key | does | action |\n|---|---|---|";
            writeln!(page, "\n## {title}\n\nIn `console.yaml`: `{name}`.\n\n{head}").unwrap();
            for KeyRow { keys, action, about, .. } in *rows {
                let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                let keys = keys.join(", ").replace('|', "\\|");
                writeln!(page, "| {keys} | {about} | `{}` |", action.name()).unwrap();
            }
        }
        page
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a switch for the person who runs the tests")]
    fn the_page_of_keys_is_what_the_tables_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/keys.md");
        if std::env::var_os("TOOLHOST_BLESS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), page(), "TOOLHOST_BLESS=1 writes it");
    }
}

#[cfg(test)]
mod key_press_tests {
    use super::*;

    #[test]
    fn every_key_is_read_as_it_is_shown() {
        for key in KEY_TABLES.iter().flat_map(|table| table.rows).flat_map(|row| row.keys) {
            assert_eq!(key.to_string().parse(), Ok(*key));
        }
        assert_eq!("Ctrl+P".parse(), Ok(KeyPress::Ctrl('p')));
        assert_eq!("alt-X".parse(), Ok(KeyPress::Alt('X')));
        for wrong in ["", "f0", "f13", "ctrl-", "ctrl-ab", "hyper-x", "\u{1b}"] {
            assert_eq!(wrong.parse::<KeyPress>(), Err(()), "{wrong:?}");
        }
    }
}
