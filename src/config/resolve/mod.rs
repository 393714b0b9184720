//! Expanded trees → specs.
//!
//! Owns: what each key means, defaults, and what configuration alone can check. One bad entry goes
//! out of service with its reason; the rest is not touched. Never does: start, open or contact
//! anything an entry names (files that a schema refers to are read).

pub mod auth;
pub mod definition;
pub mod endpoint;
pub mod origin;
pub mod schemas;
pub mod servers;
pub mod settings;
pub mod tools;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::consent::{Access, Consent};
use super::expand::Expander;
use super::keys::{self, KeyWord};
use super::node::{Key, Node};
use super::parse::Duplicate;
use super::secrets::Literals;
use super::spec::{Configuration, DisabledEntry, FileRole, KindWords, Layer, UntrustedEntry};
use crate::model::{Place, Problem};

/// What is known about the file an entry stands in.
pub(super) struct FileContext<'a> {
    /// The environment, for files that may use it.
    pub access: Access<'a>,
    pub kinds: &'a [KindWords],
    pub layer: Layer,
    /// Relative paths are relative to this: the file's directory.
    pub base_dir: PathBuf,
    /// The directory of the project's configuration, when there is one.
    pub project_root: Option<PathBuf>,
    /// Where a server without `cwd` works.
    pub default_cwd: PathBuf,
    /// Whether it belongs to a project, whose entries take no name of the user's unasked.
    pub is_project: bool,
    /// The root of the project, links resolved.
    pub root: &'a Path,
    pub duplicates: Vec<Duplicate>,
    /// The file's `schemas`, `defaults`.
    pub schemas: Option<Node>,
    pub defaults: Option<Node>,
    /// The named directories its entries may use.
    pub scopes: Arc<BTreeMap<String, PathBuf>>,
}

impl FileContext<'_> {
    /// The way from references to values; `None` while nobody agreed to the file.
    pub fn expander(&self) -> Option<Expander<'_>> {
        self.access.expander(&self.base_dir)
    }
}

/// Everything gathered over all files.
pub(super) struct Gathered<'a> {
    pub configuration: Configuration,
    pub consent: &'a Consent,
    pub literals: Literals,
    tools: Names,
    servers: Names,
}

impl<'a> Gathered<'a> {
    pub fn new(consent: &'a Consent) -> Self {
        Self {
            configuration: Configuration::default(),
            consent,
            literals: Literals::default(),
            tools: Names::default(),
            servers: Names::default(),
        }
    }

    /// Reports what was found about an entry; puts it out of service when there is an error.
    /// Whether it stays in service.
    fn settle(&mut self, name: &str, role: FileRole, findings: Findings) -> bool {
        let mut first = None;
        for problem in findings.problems {
            let problem = problem.entry(name);
            if problem.is_error() && first.is_none() {
                first = Some(problem.clone());
            }
            self.configuration.problems.push(problem);
        }
        let in_service = first.is_none();
        if let Some(problem) = first {
            self.configuration.disabled.push(DisabledEntry {
                name: name.to_owned(),
                role,
                problem,
                declares: Vec::new(),
                refusal: None,
            });
        }
        in_service
    }

    /// Remembers which tools the entry that went out of service last would have offered.
    fn declared(&mut self, tools: Vec<String>) {
        if let Some(entry) = self.configuration.disabled.last_mut() {
            entry.declares = tools;
        }
    }

    /// Whether the user's own files keep a name from an entry of a project; that is said.
    fn keeps_own(
        &mut self,
        (name, is_component): (&str, bool),
        place: &Place,
        file: &FileContext<'_>,
    ) -> bool {
        let kept =
            if file.is_project { self.consent.kept_by_user(name, is_component) } else { None };
        let Some(own) = kept else { return false };
        let problem =
            Problem::warning(format!("left out: it would take the place of your own {own}"))
                .hint("'toolhost trust' shows what a project would replace, and allows it");
        self.configuration.problems.push(problem.at(place.clone()).entry(name));
        true
    }

    /// Lists an entry of a project that nobody agreed to yet.
    fn untrusted(&mut self, entry: UntrustedEntry) {
        self.configuration.untrusted.push(entry);
    }

    /// What an entry that may not act yet would do, the command that allows it, and whether its
    /// project was trusted before.
    fn refusal_words(&self, name: &str) -> (Vec<String>, String, bool) {
        match &self.consent.request {
            Some(request) => {
                (self.consent.effects_of(name), request.command(), request.previous.is_some())
            }
            None => (Vec::new(), "toolhost trust".to_owned(), false),
        }
    }

    /// Puts an entry out of service without calling that a problem.
    fn switched_off(&mut self, name: &str, role: FileRole, place: Place) {
        let problem = Problem::warning("switched off in the file").at(place).entry(name);
        let (name, declares) = (name.to_owned(), Vec::new());
        self.configuration.disabled.push(DisabledEntry {
            name,
            role,
            problem,
            declares,
            refusal: None,
        });
    }
}

/// Names in use, with the place and layer of their owner.
#[derive(Default)]
struct Names(HashMap<String, (Place, Layer)>);

/// What claiming a name gave.
enum Claim {
    /// It is the entry's now.
    Granted,
    /// A file that wins has an entry of this name; this one only fills gaps and is left out.
    Shadowed,
    /// An entry before it in the same layer has the name.
    Taken(Problem),
}

impl Names {
    fn claim(&mut self, name: &str, place: Place, layer: Layer) -> Claim {
        match self.0.get(name) {
            None => {
                self.0.insert(name.to_owned(), (place, layer));
                Claim::Granted
            }
            Some((_, owner)) if *owner != layer => Claim::Shadowed,
            Some((first, _)) => Claim::Taken(
                Problem::error(format!(
                    "the name '{name}' is taken: first used at {}:{}:{}",
                    first.file.display(),
                    first.line,
                    first.column
                ))
                .hint("rename one of them")
                .at(place),
            ),
        }
    }

    fn owner(&self, name: &str) -> Option<&Place> {
        self.0.get(name).map(|(place, _)| place)
    }
}

/// What was found about one entry; all of it is reported at once.
#[derive(Default)]
pub(super) struct Findings {
    pub problems: Vec<Problem>,
}

impl Findings {
    /// The value, or nothing and a finding.
    pub fn take<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    pub fn error(&mut self, place: Place, message: impl Into<String>) {
        self.problems.push(Problem::error(message).at(place));
    }

    pub fn warn(&mut self, place: Place, message: impl Into<String>) {
        self.problems.push(Problem::warning(message).at(place));
    }

    /// Warns about a key that nobody reads. Keys that begin with `x-` are for other programs.
    pub fn unknown_key(
        &mut self,
        owner: &Node,
        key: &Key,
        table: &'static [KeyWord],
        more: &[&str],
    ) {
        if key.text.starts_with("x-") {
            return;
        }
        let known = keys::spellings(table).chain(more.iter().copied());
        let mut problem = Problem::warning(format!("unknown key '{}'", key.text));
        if let Some(meant) = keys::suggestion(&key.text, known) {
            problem = problem.hint(format!("did you mean '{meant}'?"));
        }
        self.problems.push(problem.at(owner.place_of(key)));
    }

    /// Takes the duplicate keys of `entry` out of the file's list.
    pub fn duplicates(&mut self, entry: &Node, found: &mut Vec<Duplicate>) {
        if found.is_empty() {
            return;
        }
        found.retain(|duplicate| {
            let mine = holds(entry, duplicate);
            if mine {
                self.problems.push(duplicate.problem.clone());
            }
            !mine
        });
    }
}

/// Whether the repeated key stands in `node`.
fn holds(node: &Node, duplicate: &Duplicate) -> bool {
    use super::node::NodeValue;
    match &node.value {
        NodeValue::Map(entries) => {
            entries.iter().any(|(k, v)| k.position == duplicate.position || holds(v, duplicate))
        }
        NodeValue::List(items) => items.iter().any(|item| holds(item, duplicate)),
        _ => false,
    }
}

/// A count that fits the number of retries anybody could want.
fn retries(node: &Node) -> Result<u32, Problem> {
    const MOST: u64 = 100;
    let count = node.as_count()?;
    u32::try_from(count)
        .ok()
        .filter(|_| count <= MOST)
        .ok_or_else(|| Problem::error(format!("at most {MOST} retries")).at(node.place()))
}

/// A duration that is not zero: a limit of nothing would refuse everything.
fn limit(node: &Node) -> Result<std::time::Duration, Problem> {
    let value = node.as_duration()?;
    if value.is_zero() {
        return Err(Problem::error("a limit has to be more than 0").at(node.place()));
    }
    Ok(value)
}

/// Whether the entry is switched off with `disabled` or `enabled`.
fn is_off(entry: &Node, findings: &mut Findings) -> bool {
    let flag = |findings: &mut Findings, key: &str| {
        entry.get(key).and_then(|node| findings.take(node.as_bool()))
    };
    let disabled = flag(findings, "disabled");
    let enabled = flag(findings, "enabled");
    disabled == Some(true) || enabled == Some(false)
}
