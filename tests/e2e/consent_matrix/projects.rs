//! Projects that hold many cases at once: one entry for each, every case with a value of its own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::commands::{COMMANDS, Command, Names, line};
use super::entries::{self, Reach};
use super::forms::Form;
use super::places::{File, Place, TEXT, entry_definition, schema};
use super::search::{Found, Planted};
use crate::support::{Finished, Listener, Pty, Recorder, Sandbox};

/// One place with one form of text.
#[derive(Debug, Clone)]
pub struct Case {
    pub number: usize,
    pub place: Place,
    pub form: Form,
    /// The kind of the entry, which decides what surrounds the key.
    pub kind: String,
}

/// A room with a project whose entries are cases.
pub struct Project {
    room: Sandbox,
    cases: Vec<Case>,
    environment: Vec<(String, String)>,
    recorder: Recorder,
    listeners: Vec<Listener>,
}

impl Project {
    /// Writes the files of a project. All cases are of one file, and of one container or beside
    /// the entries.
    pub fn new(cases: Vec<Case>) -> Self {
        let room = Sandbox::new();
        let recorder = Recorder::new(&room);
        let (http, socket, bus) =
            (Listener::http(), room.path("run/server.sock"), room.path("run/bus.sock"));
        let listeners = vec![http, Listener::unix(&socket), Listener::unix(&bus)];
        let authority = listeners[0].authority();
        let reach = Reach { recorder: &recorder, authority: &authority, socket: &socket };
        entries::documents(&room, &reach);
        let mut environment =
            vec![("DBUS_SESSION_BUS_ADDRESS".to_owned(), format!("unix:path={}", bus.display()))];
        let mut filled = Vec::new();
        for case in &cases {
            let (text, variable) = case.form.plant(case.number, &room, &reach);
            environment.extend(variable);
            filled.push(fill(&case.place.template, &text));
        }
        let file = cases[0].place.file;
        let text = match &cases[0].place.container {
            Some(container) => of_entries(file, container, &cases, filled, &reach),
            None => beside_entries(file, filled, &reach),
        };
        room.file(file.of_container(cases[0].place.container.as_deref()), &text.to_string());
        Self { room, cases, environment, recorder, listeners }
    }

    /// Puts a program that writes down its starts under names that a project is likely to start.
    pub fn watch_programs(&mut self) {
        for name in ["python3", "python", "node", "git", "sh", "secret-tool", "xdg-open", "uv"] {
            self.recorder.name(&self.room.path("run/bin").join(name));
        }
        let path = format!("{}:/usr/bin:/bin", self.room.path("run/bin").display());
        self.environment.push(("PATH".to_owned(), path));
    }

    /// Gives consent to everything, as a person's script would.
    pub fn trust(&self) -> Finished {
        self.run(&["trust".to_owned(), "--yes".to_owned()], None)
    }

    fn run(&self, words: &[String], shell: Option<&str>) -> Finished {
        let mut run = self.room.toolhost(words.iter().map(String::as_str));
        for (name, value) in &self.environment {
            run = run.env(name, value);
        }
        if let Some(shell) = shell {
            run = run.env("COMPLETE", shell);
        }
        run.go()
    }

    /// Runs these commands; those that name an entry for each case that is to be named. Gives
    /// what was found and how many cases were tried.
    pub fn try_commands(
        &self,
        consent: Consent,
        wanted: impl Fn(&Command) -> bool,
    ) -> (Vec<Found>, usize) {
        let planted = Planted::new(&self.room, &self.cases);
        let (mut found, mut tried) = (Vec::new(), 0);
        let mut witnessed = self.witnessed();
        for command in COMMANDS.iter().filter(|command| wanted(command)) {
            for (name, weight) in self.names(command.names) {
                tried += weight;
                if command.words[0] == "test" {
                    let suite = format!("tests: [{{ tool: {name} }}]\n");
                    self.room.file(&format!("{name}.suite.yaml"), &suite);
                }
                let (words, shell) = line(*command, &name);
                let finished = self.run(&words, shell);
                let said = words.join(" ");
                if !finished.in_time || finished.code.is_none_or(|code| code == 101) {
                    found.push(Found::of(&said, &format!("no proper end: {:?}", finished.code)));
                }
                found.extend(planted.in_output(&said, &finished));
                let now = self.witnessed();
                for (now, before) in now.iter().zip(&witnessed) {
                    for new in now.iter().skip(before.len()) {
                        found.extend(match consent {
                            Consent::None => planted.unasked(&said, new),
                            Consent::Given => planted.elsewhere(&said, new),
                        });
                    }
                }
                witnessed = now;
            }
        }
        found.extend(planted.in_files());
        (found, tried)
    }

    /// Every connection and every start so far, for each witness.
    fn witnessed(&self) -> Vec<Vec<String>> {
        let connection = |request: String| format!("a connection: {request}");
        let mut all: Vec<Vec<String>> = self
            .listeners
            .iter()
            .map(|listener| listener.requests().into_iter().map(connection).collect())
            .collect();
        let starts = self.recorder.starts().into_iter();
        all.push(starts.map(|start| format!("a process: {start}")).collect());
        all
    }

    /// Opens the console and closes it again.
    pub fn try_console(&self) -> (Vec<Found>, usize) {
        let planted = Planted::new(&self.room, &self.cases);
        let mut pty = Pty::console_with(&self.room, &self.environment, 60, 160);
        // It may ask first; that is not what this is about.
        while pty.expect_first_of(&["Tools", "[y/N]", "[no]"]) != 0 {
            pty.cleared().type_keys("n\r");
        }
        // The entry with nothing to hide is there, on the page of its kind.
        match self.cases[0].place.file {
            File::Tools => pty.expect_shown("program"),
            File::Servers => pty.type_keys("2").expect_shown("plain"),
        };
        pty.type_keys("q");
        let (code, screen) = pty.finish();
        let mut found = planted.in_text("the console", screen.as_bytes());
        if code != Some(0) {
            found.push(Found::of("the console", &format!("no proper end: {code:?}")));
        }
        for new in self.witnessed().iter().flatten() {
            found.extend(planted.unasked("the console", new));
        }
        found.extend(planted.in_files());
        (found, self.cases.len())
    }

    /// What a command can name here, and how many cases each run tries.
    fn names(&self, names: Names) -> Vec<(String, usize)> {
        let named = |case: &&Case| {
            let file = match names {
                Names::Tool => File::Tools,
                Names::Server | Names::Nothing => File::Servers,
            };
            case.place.file == file && case.place.container.is_some()
        };
        let name = |case: &Case| match names {
            Names::Tool => entries::tool_name(&case.kind, &format!("e{}", case.number)),
            Names::Server | Names::Nothing => format!("e{}", case.number),
        };
        match names {
            Names::Nothing => vec![(String::new(), self.cases.len())],
            Names::Tool if self.cases[0].place.container.is_none() => {
                let users = ["relative", "hidden", "api_get", "scoped-read", "keyed"];
                users.iter().map(|name| ((*name).to_owned(), self.cases.len())).collect()
            }
            Names::Tool | Names::Server => {
                self.cases.iter().filter(named).map(|case| (name(case), 1)).collect()
            }
        }
    }
}

/// Whether the project was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    None,
    Given,
}

fn of_entries(
    file: File,
    container: &str,
    cases: &[Case],
    filled: Vec<Value>,
    reach: &Reach<'_>,
) -> Value {
    let mut by_name = BTreeMap::new();
    for (case, over) in cases.iter().zip(filled) {
        let name = format!("e{}", case.number);
        let mut entry = match file {
            File::Tools => entries::tool(&case.kind, &name, reach),
            File::Servers => entries::server(&case.kind, &name, reach),
        };
        let entry_keys = entry.as_object_mut().unwrap();
        if let Some(replaced) = &case.place.replaces {
            entry_keys.remove(replaced);
        }
        merge(&mut entry, over);
        by_name.insert(name, entry);
    }
    // One entry that holds nothing to refer to, and always is what it says.
    let (plain, entry) = match file {
        File::Tools => ("program", entries::tool("command", "program", reach)),
        File::Servers => ("plain", entries::server("http", "plain", reach)),
    };
    by_name.insert(plain.to_owned(), entry);
    let property = &schema(file)["properties"][container];
    let is_map = container.is_empty() || entry_definition(property).is_some_and(|(_, map)| map);
    if is_map {
        let map: Map<String, Value> = by_name.into_iter().collect();
        return if container.is_empty() { map.into() } else { json!({ container: map }) };
    }
    let named = |(name, mut entry): (String, Value)| {
        let keys = entry.as_object_mut().unwrap();
        if !["name", "tool_name", "client_id"].iter().any(|key| keys.contains_key(*key)) {
            keys.insert("name".to_owned(), json!(name));
        }
        entry
    };
    let list: Vec<Value> = by_name.into_iter().map(named).collect();
    json!({ container: list })
}

fn beside_entries(file: File, filled: Vec<Value>, reach: &Reach<'_>) -> Value {
    // The handle of the table is named by an entry, so that its value would be read for it.
    let handle = json!({ "X_KEY": { "type": "bearer", "value": "plain" } });
    let mut text = match file {
        File::Tools => json!({ "credentials": handle, "tools": entries::users_of_defaults(reach) }),
        File::Servers => {
            let mut keyed = entries::server("http", "keyed", reach);
            keyed["credentials"] = json!(["X_KEY"]);
            let one = entries::server("http", "one", reach);
            json!({ "credentials": handle, "mcp_servers": { "one": one, "keyed": keyed } })
        }
    };
    let mut all = json!({});
    for template in filled {
        combine(&mut all, template);
    }
    merge(&mut text, all);
    text
}

/// Whether two templates can stand in one file.
pub fn fit(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.iter().all(|(key, value)| other.get(key).is_none_or(|there| fit(value, there)))
        }
        // The items of both.
        (Value::Array(_), Value::Array(_)) => true,
        _ => false,
    }
}

/// Puts together two templates that fit.
fn combine(one: &mut Value, other: Value) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in other {
                match one.get_mut(&key) {
                    Some(there) => combine(there, value),
                    None => {
                        one.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(one), Value::Array(other)) => one.extend(other),
        (one, other) => panic!("{one} and {other} do not fit"),
    }
}

fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(&key) {
                    Some(there) if there.is_object() && value.is_object() => merge(there, value),
                    _ => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}

/// The template with the text where it goes.
fn fill(template: &Value, text: &str) -> Value {
    match template {
        Value::String(word) if word == TEXT => json!(text),
        Value::Array(items) => items.iter().map(|item| fill(item, text)).collect(),
        Value::Object(pairs) => {
            let pair = |(key, value): (&String, &Value)| {
                let key = if key == TEXT { text } else { key };
                (key.to_owned(), fill(value, text))
            };
            Value::Object(pairs.iter().map(pair).collect())
        }
        other => other.clone(),
    }
}
