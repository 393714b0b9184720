//! The matrix of consent: every key of the files that can hold text × every form of reference ×
//! every command that reads configuration.
//!
//! Before consent nothing is started, nobody is contacted, and no value is in any output or file.
//! After it a value is where its entry sends it, and nowhere else. The keys come from the JSON
//! Schemas of the files and the commands are compared with `--help`, so that neither can be
//! forgotten here.
//!
//! Each command meets every key with some of the forms, and all forms of every key meet some of the
//! commands. `TOOLHOST_MATRIX=full` runs every command for every key with every form.

mod commands;
mod entries;
mod forms;
mod places;
mod projects;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use self::commands::{COMMANDS, Command, Names, READ_NO_ENTRIES};
use self::forms::Form;
use self::places::{File, Place};
use self::projects::{Case, Consent, Project, fit};
use self::search::Found;
use crate::support::Sandbox;

/// How many projects each test tries at once: several of these tests run beside others, which have limits.
const WORKERS: usize = 2;
/// How many cases one project holds at most for commands that read all of them: reading takes
/// longer the more there are, starting the program does not.
const MANY: usize = 400;
/// The same for commands that name one of them.
const FEW: usize = 20;

/// The cases of some places, packed into projects of at most so many.
fn pack(
    places: &[Place],
    most: usize,
    forms: impl Fn(usize, &Place) -> Vec<Form>,
) -> Vec<Vec<Case>> {
    let mut packed: BTreeMap<_, Vec<Vec<Case>>> = BTreeMap::new();
    let mut number = 0;
    for (at, place) in places.iter().enumerate() {
        for form in forms(at, place) {
            number += 1;
            // Each form meets another kind, so that together they meet all.
            let kind = place.kinds[(at + form as usize) % place.kinds.len()].clone();
            let case = Case { number, place: place.clone(), form, kind };
            // Beside the entries few places fit together, so all forms share a file.
            let own_form = place.container.is_some().then_some(form);
            let projects = packed.entry((place.container.as_deref(), own_form)).or_default();
            let has_room = |cases: &&mut Vec<Case>| {
                let fits = |other: &Case| fit(&other.place.template, &place.template);
                cases.len() < most && (place.container.is_some() || cases.iter().all(fits))
            };
            match projects.iter_mut().find(has_room) {
                Some(cases) => cases.push(case),
                None => projects.push(vec![case]),
            }
        }
    }
    packed.into_values().flatten().collect()
}

/// Runs all projects, some at once.
fn run(projects: Vec<Vec<Case>>, one: impl Fn(Vec<Case>) -> (Vec<Found>, usize) + Sync) -> Tally {
    let queue = Mutex::new(projects);
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(cases) = queue.lock().unwrap().pop() else { return };
                    let (found, tried) = one(cases);
                    let mut tally = tally.lock().unwrap();
                    tally.found.extend(found);
                    tally.tried += tried;
                }
            });
        }
    });
    tally.into_inner().unwrap()
}

#[derive(Default)]
struct Tally {
    found: BTreeSet<Found>,
    tried: usize,
}

impl Tally {
    /// Fails when a value was anywhere it must not be, with each key, form and command.
    #[track_caller]
    #[expect(clippy::print_stderr, reason = "how much was tried is worth a line")]
    fn hold(&self, what: &str) {
        eprintln!("{what}: {} cases of key, form and command", self.tried);
        assert!(self.tried > 0, "{what}: nothing was tried");
        let mut by_case: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for found in &self.found {
            by_case.entry(&found.case).or_default().insert(&found.what);
        }
        let mut lines: Vec<String> = by_case
            .iter()
            .map(|(case, whats)| {
                format!("{case}\n      {}", whats.iter().copied().collect::<Vec<_>>().join("; "))
            })
            .collect();
        let total = lines.len();
        lines.truncate(200);
        assert!(total == 0, "{what}: {total} leaks in {} cases\n{}", self.tried, lines.join("\n"));
    }
}

/// The first container of each file is tried with every form, and the keys beside the entries;
/// the other spellings and places of the same entries, or guesses, with one form each.
fn by_all(at: usize, place: &Place) -> Vec<Form> {
    let is_first = matches!(place.container.as_deref(), Some("tools" | "mcp_servers") | None);
    match (is_first, place.is_guess) {
        (true, false) => Form::ALL.to_vec(),
        (false, true) => Vec::new(),
        (true, true) | (false, false) => vec![Form::ALL[at % Form::ALL.len()]],
    }
}

/// A command that names an entry is run for each key of the first container, with one form of
/// each, or with all of them in the full matrix.
fn by_name(at: usize, place: &Place) -> Vec<Form> {
    let is_first = matches!(place.container.as_deref(), Some("tools" | "mcp_servers"));
    if is_full() {
        Form::ALL.to_vec()
    } else if is_first && !place.is_guess {
        vec![Form::ALL[at % Form::ALL.len()]]
    } else {
        Vec::new()
    }
}

/// The places of one file: among the entries, or beside them.
fn places(file: File, among_entries: bool) -> Vec<Place> {
    let mine = |place: &Place| place.file == file && place.container.is_some() == among_entries;
    places::all().into_iter().filter(mine).collect()
}

fn is_full() -> bool {
    std::env::var_os("TOOLHOST_MATRIX").is_some_and(|value| value == "full")
}

fn untrusted(projects: Vec<Vec<Case>>, wanted: impl Fn(&Command) -> bool + Sync) -> Tally {
    run(projects, |cases| {
        // The cases among the entries of a project share their form.
        let form = cases[0].place.container.is_some().then_some(cases[0].form);
        let mut project = Project::new(cases);
        project.watch_programs();
        project.try_commands(Consent::None, |command| wanted(command) && is_in_turn(form, command))
    })
}

/// Every third command meets a form, and others the next form.
fn is_in_turn(form: Option<Form>, command: &Command) -> bool {
    let at = COMMANDS.iter().position(|known| known.words == command.words).unwrap();
    let met = form.is_none_or(|form| (at + form as usize).is_multiple_of(3));
    met || command.names != Names::Nothing || shows_records(command) || is_full()
}

fn reads_all(command: &Command) -> bool {
    command.names == Names::Nothing && !shows_records(command)
}

/// What shows the records of calls comes after the commands that make some.
fn shows_records(command: &Command) -> bool {
    ["history", "audit"].contains(&command.words[0])
}

fn names_one(command: &Command) -> bool {
    command.names != Names::Nothing || shows_records(command)
}

#[test]
fn no_key_of_a_tool_acts_before_consent() {
    let projects = pack(&places(File::Tools, true), MANY, by_all);
    untrusted(projects, reads_all).hold("keys of tools, commands that read all");
}

#[test]
fn no_key_of_a_tool_acts_before_consent_when_it_is_named() {
    let projects = pack(&places(File::Tools, true), FEW, by_name);
    untrusted(projects, names_one).hold("keys of tools, commands that name one");
}

#[test]
fn no_key_of_a_server_acts_before_consent() {
    let projects = pack(&places(File::Servers, true), MANY, by_all);
    untrusted(projects, reads_all).hold("keys of servers, commands that read all");
}

#[test]
fn no_key_of_a_server_acts_before_consent_when_it_is_named() {
    let projects = pack(&places(File::Servers, true), FEW, by_name);
    untrusted(projects, names_one).hold("keys of servers, commands that name one");
}

#[test]
fn no_key_beside_the_entries_acts_before_consent() {
    let projects =
        [File::Tools, File::Servers].map(|file| pack(&places(file, false), MANY, by_all));
    untrusted(projects.concat(), |_| true).hold("keys beside the entries");
}

/// After consent fewer forms and commands are enough: each place with one form, rotated.
fn trusted(file: File, among_entries: bool) -> Tally {
    const FORMS: [Form; 4] = [Form::Default, Form::File, Form::InUrl, Form::Variable];
    let mut seen = BTreeSet::new();
    let mut places = places(file, among_entries);
    places.retain(|place| {
        ["tools", "mcp_servers"].contains(&place.container.as_deref().unwrap_or("tools"))
            && seen.insert(place.template.to_string())
    });
    let projects = pack(&places, FEW, |at, _| vec![FORMS[at % FORMS.len()]]);
    run(projects, |cases| {
        let project = Project::new(cases);
        let trust = project.trust();
        assert_eq!(trust.code, Some(0), "{trust}");
        let some = [&["list", "--json"][..], &["servers"], &["config", "show"], &["verify"]];
        let named = [&["inspect", "@"][..], &["call", "@", "--yes"], &["call", "@", "--dry-run"]];
        let server = [&["trace", "@"][..]];
        let last = [&["history", "--json"][..], &["audit"]];
        project.try_commands(Consent::Given, |command| {
            let all = some.iter().chain(&named).chain(&server).chain(&last);
            all.clone().any(|words| *words == command.words)
        })
    })
}

#[test]
fn after_consent_a_value_of_a_tool_goes_only_where_its_entry_sends_it() {
    trusted(File::Tools, true).hold("keys of trusted tools");
}

#[test]
fn after_consent_a_value_of_a_server_goes_only_where_its_entry_sends_it() {
    trusted(File::Servers, true).hold("keys of trusted servers");
}

#[test]
fn after_consent_a_value_beside_the_entries_is_in_no_output() {
    trusted(File::Tools, false).hold("keys beside trusted tools");
    trusted(File::Servers, false).hold("keys beside trusted servers");
}

/// A new command has to be put into the table, or among those that read no entries.
#[test]
fn every_command_is_in_the_matrix() {
    let room = Sandbox::new();
    let help = room.toolhost(["--help"]).check().out();
    let section = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = section.lines().filter(is_command);
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 15, "{help}");
    for name in names {
        let is_tried = COMMANDS.iter().any(|command| command.words[0] == name);
        assert!(is_tried || READ_NO_ENTRIES.contains(&name), "'{name}' is not in the matrix");
    }
}

#[test]
fn every_key_of_the_schemas_is_a_place() {
    let all = places::all();
    for (file, pointer) in [(File::Tools, "tool"), (File::Servers, "server")] {
        let schema = places::schema(file);
        let keys = schema["$defs"][pointer]["properties"].as_object().unwrap();
        for key in keys.keys() {
            let is_place = |place: &Place| place.file == file && place.template.get(key).is_some();
            assert!(all.iter().any(is_place), "{}: {key} is not a place", file.name());
        }
    }
    for wanted in ["mcp_servers.auth.token", "roots[]", "defaults.base_url", ".env.X_KEY"] {
        assert!(all.iter().any(|place| place.path.contains(wanted)), "{wanted}");
    }
}

/// The console is opened on a project that nobody trusted, and closed.
#[test]
fn the_console_of_an_untrusted_project_starts_and_shows_nothing_of_it() {
    let some = |at, place: &Place| match by_name(at, place) {
        forms if forms.is_empty() || at % 7 != 0 => Vec::new(),
        _ => vec![Form::Variable, Form::InUrl],
    };
    let projects = [File::Tools, File::Servers].map(|file| pack(&places(file, true), FEW, some));
    let tally = run(projects.concat(), |cases| {
        let mut project = Project::new(cases);
        project.watch_programs();
        project.try_console()
    });
    tally.hold("the console");
}
