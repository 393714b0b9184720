//! The search for planted values in what a run left.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;

use super::forms::{Form, STEM};
use super::projects::Case;
use crate::support::{Finished, Sandbox, disguises, files_below};

/// A value that was where it must not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The place and the form of its text, as far as they are known.
    pub case: String,
    /// Where it was, and what was done.
    pub what: String,
}

impl Found {
    pub fn of(what: &str, case: &str) -> Self {
        Self { case: case.to_owned(), what: what.to_owned() }
    }
}

/// What was planted in a room.
pub struct Planted<'a> {
    room: &'a Sandbox,
    cases: BTreeMap<usize, &'a Case>,
    disguises: Vec<Vec<u8>>,
    /// The beginning of an expanded `~`.
    home: String,
}

impl<'a> Planted<'a> {
    pub fn new(room: &'a Sandbox, cases: &'a [Case]) -> Self {
        Self {
            room,
            cases: cases.iter().map(|case| (case.number, case)).collect(),
            disguises: disguises(STEM),
            home: room.path("home/x").display().to_string(),
        }
    }

    fn name(&self, number: usize) -> String {
        self.cases.get(&number).map_or_else(
            || format!("a value of no case ({number})"),
            |case| format!("{} [{}] {:?}", case.place.path, case.kind, case.form),
        )
    }

    /// The numbers of the values in some bytes.
    fn values(bytes: &[u8]) -> BTreeSet<usize> {
        let numbers = memmem::find_iter(bytes, STEM).map(|at| number(&bytes[at + STEM.len()..]));
        numbers.flatten().collect()
    }

    /// Values in what a command printed.
    pub fn in_output(&self, command: &str, finished: &Finished) -> Vec<Found> {
        let command = without_name(command);
        let mut found = self.in_text(&format!("stdout of {command}"), &finished.stdout);
        found.extend(self.in_text(&format!("stderr of {command}"), &finished.stderr));
        found
    }

    /// Values in some text, and home directories that were resolved.
    pub fn in_text(&self, what: &str, bytes: &[u8]) -> Vec<Found> {
        let mut found = self.values_in(what, bytes);
        for at in memmem::find_iter(bytes, &self.home) {
            let number = number(&bytes[at + self.home.len()..]);
            let case = number.and_then(|number| self.cases.get(&number));
            // The question names programs and directories.
            if case.is_none_or(|case| case.form == Form::Tilde && !names_a_program(case)) {
                found.push(Found::of(what, &self.name(number.unwrap_or(0))));
            }
        }
        found
    }

    fn values_in(&self, what: &str, bytes: &[u8]) -> Vec<Found> {
        let values = Self::values(bytes);
        let mut found: Vec<Found> =
            values.iter().map(|number| Found::of(what, &self.name(*number))).collect();
        // A disguised value does not tell its number.
        let is_disguised = |shape: &Vec<u8>| memmem::find(bytes, shape).is_some();
        if self.disguises[1..].iter().any(is_disguised) {
            found.push(Found::of(what, "a value in another notation"));
        }
        found
    }

    /// Something that happened without consent.
    pub fn unasked(&self, command: &str, witnessed: &str) -> Vec<Found> {
        let what = format!("{} by {}", head(witnessed), without_name(command));
        let mut numbers = Self::values(witnessed.as_bytes());
        numbers.extend(sender(witnessed));
        if numbers.is_empty() {
            return vec![Found::of(&what, "an entry of the table")];
        }
        numbers.iter().map(|n| Found::of(&what, &self.name(*n))).collect()
    }

    /// Values that were sent by another entry than their own, after consent. What stands beside
    /// the entries is for all of them.
    pub fn elsewhere(&self, command: &str, witnessed: &str) -> Vec<Found> {
        let Some(sender) = sender(witnessed) else { return Vec::new() };
        let foreign = |number: &usize| {
            let case = self.cases.get(number);
            *number != sender && case.is_none_or(|case| case.place.container.is_some())
        };
        let what = format!(
            "{} of the entry {}, by {}",
            head(witnessed),
            self.name(sender),
            without_name(command)
        );
        let values = Self::values(witnessed.as_bytes());
        let foreign = values.iter().filter(|number| foreign(number));
        foreign.map(|n| Found::of(&what, &self.name(*n))).collect()
    }

    /// Values in files: everything below the room but what was planted.
    pub fn in_files(&self) -> Vec<Found> {
        let directories = ["home", "state", "cache", "data", "config", "work"];
        let files = directories.iter().flat_map(|name| files_below(&self.room.path(name)));
        files
            .flat_map(|path| {
                let bytes = std::fs::read(&path).unwrap_or_default();
                let shown = path.strip_prefix(self.room.path("")).unwrap().display();
                self.values_in(&format!("the file {shown}"), &bytes)
            })
            .collect()
    }
}

/// `~` is resolved before consent where the question names what would be started.
fn names_a_program(case: &Case) -> bool {
    let keys = case.place.template.as_object().unwrap();
    let named = ["command", "args", "cwd", "server_path", "python", "interpreter", "root"];
    keys.keys().any(|key| named.contains(&key.as_str()))
}

fn number(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&bytes[..digits]).ok()?.parse().ok()
}

/// The entry that sent a request or started a program: its number is in the path and in the
/// arguments of the table's entries.
fn sender(witnessed: &str) -> Option<usize> {
    let first = witnessed.lines().next()?;
    let mut words = first.split([' ', '/', '?']);
    words.find_map(|word| word.strip_prefix('e')?.parse().ok())
}

/// What kind of event it was.
fn head(witnessed: &str) -> &str {
    witnessed.split(':').next().unwrap_or_default()
}

/// A command line without the number of the entry it names.
fn without_name(command: &str) -> String {
    let word = |word: &str| {
        let is_name = word
            .strip_prefix('e')
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
        if is_name { "NAME".to_owned() } else { word.to_owned() }
    };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
