//! The user's settings of the console: `console.yaml`.

use ratatui::style::Color;
use serde_json::{Map, Value, json};

use crate::config::node::{ConfigNode, SourceText};
use crate::config::parse;
use crate::model::Diagnostic;
use crate::tui::keys::{self, KEY_TABLES, KeyPress, Keymap};
use crate::tui::prelude::*;
use crate::tui::theme::{Appearance, ColourScheme, OwnColours, ROLES};

/// The name of the file, in the directory of the user's configuration.
pub const FILE: &str = "console.yaml";

const KEYS: &str = "theme, colours, ascii, reduced_motion, mouse, clock, image, keys";

/// The settings in `console.yaml`; what is not set there is as it was.
#[derive(Debug, Clone, Default)]
pub struct ConsoleSettings {
    pub look: Appearance,
    pub keys: Keymap,
}

pub fn read(
    source: &Arc<SourceText>,
    text: &str,
    look: Appearance,
) -> (ConsoleSettings, Vec<Diagnostic>) {
    let mut settings = ConsoleSettings { look, keys: Keymap::default() };
    let root = match parse::parse(source, text) {
        Ok(root) => root,
        Err(problem) => return (settings, vec![problem]),
    };
    let mut problems = root.repeated_keys();
    if root.is_null() {
        return (settings, problems);
    }
    let entries = match root.as_map() {
        Ok(entries) => entries,
        Err(problem) => return (settings, vec![problem]),
    };
    let themes = ColourScheme::ALL.map(ColourScheme::name);
    let ConsoleSettings { look, keys: map } = &mut settings;
    for (key, value) in entries {
        let taken = match &*key.text {
            "theme" => one_of(value, &themes, |name| format!("unknown theme '{name}'"))
                .map(|name| look.palette = ColourScheme::from_name(name).unwrap_or_default()),
            "colours" => value.as_map().map(|_| colours(value, &mut look.own, &mut problems)),
            "ascii" => value.as_bool().map(|set| look.ascii |= set),
            "reduced_motion" => value.as_bool().map(|set| look.has_reduced_motion |= set),
            "mouse" => value.as_bool().map(|set| look.mouse = set),
            "clock" => value.as_bool().map(|set| look.clock = set),
            "image" => image(value).map(|shown| look.images = shown),
            "keys" => value.as_map().map(|_| keys(value, map, &mut problems)),
            other => Err(Diagnostic::error(format!("unknown setting '{other}'"))
                .with_hint(format!("expected one of {KEYS}"))
                .with_location(root.location_of(key))),
        };
        problems.extend(taken.err());
    }
    problems
        .sort_by_key(|problem| problem.location.as_ref().map(|place| (place.line, place.column)));
    (settings, problems)
}

fn colours(all: &ConfigNode, own: &mut OwnColours, problems: &mut Vec<Diagnostic>) {
    for (role, value) in all.entries() {
        let colour = value.as_scalar_text().and_then(|text| {
            text.parse::<Color>().map_err(|_| {
                Diagnostic::error(format!("invalid colour '{text}'"))
                    .with_hint("write colours as red, light-blue, 208 or '#ff8800'")
                    .with_location(value.location())
            })
        });
        match (ROLES.iter().zip(&mut own.0).find(|((name, _), _)| **name == *role.text), colour) {
            (Some((_, place)), Ok(colour)) => *place = Some(colour),
            (Some(_), Err(problem)) => problems.push(problem),
            (None, _) => {
                let problem = Diagnostic::error(format!("unknown role '{}'", role.text));
                let names = ROLES.map(|(name, _)| name).join(", ");
                let problem = problem.with_hint(format!("expected one of {names}"));
                problems.push(problem.with_location(all.location_of(role)));
            }
        }
    }
}

/// The values of `image.inline`.
pub const IMAGES: [&str; 2] = ["auto", "never"];

fn image(value: &ConfigNode) -> Result<bool, Diagnostic> {
    let mut inline = "auto";
    for (key, value) in value.as_map()? {
        if &*key.text != "inline" {
            return Err(Diagnostic::error(format!("unknown setting 'image.{}'", key.text))
                .with_hint("expected image.inline")
                .with_location(value.location()));
        }
        let unknown = |name: &str| format!("unknown value '{name}' for image.inline");
        inline = one_of(value, &IMAGES, unknown)?;
    }
    Ok(inline == "auto")
}

/// The one of these names that is written there.
fn one_of(
    value: &ConfigNode,
    names: &[&'static str],
    unknown: impl FnOnce(&str) -> String,
) -> Result<&'static str, Diagnostic> {
    let name = value.as_text()?;
    names.iter().find(|known| **known == name).copied().ok_or_else(|| {
        Diagnostic::error(unknown(name))
            .with_hint(format!("expected one of {}", names.join(", ")))
            .with_location(value.location())
    })
}

fn keys(all: &ConfigNode, map: &mut Keymap, problems: &mut Vec<Diagnostic>) {
    // What was said of a key before, in which place.
    let mut remapped: Vec<(KeyContext, KeyPress, String)> = Vec::new();
    let mut lost: Vec<(KeyContext, Action, Diagnostic)> = Vec::new();
    for (place, bindings) in all.entries() {
        let Some(when) = keys::context_of(&place.text) else {
            let problem = Diagnostic::error(format!("unknown context '{}'", place.text));
            let names = KEY_TABLES.iter().map(|table| table.name);
            let hint = format!("expected one of {}", names.collect::<Vec<_>>().join(", "));
            problems.push(problem.with_hint(hint).with_location(all.location_of(place)));
            continue;
        };
        if let Err(problem) = bindings.as_map() {
            problems.push(problem);
        }
        for (name, action) in bindings.entries() {
            let at = bindings.location_of(name);
            let Ok(key) = name.text.parse::<KeyPress>() else {
                let problem = Diagnostic::error(format!("invalid key '{}'", name.text));
                let hint = "write keys as x, X, ctrl-x, alt-x, f5, enter, space, page-up";
                problems.push(problem.with_hint(hint).with_location(at));
                continue;
            };
            let (word, action) = match bound_to(action, map) {
                Ok(bound) => bound,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            let before = remapped.iter().find(|(place, old, _)| (*place, *old) == (when, key));
            if let Some((_, _, before)) = before {
                let clash =
                    format!("{key} is already bound to {before} in {}, not {word}", when.name);
                problems.push(Diagnostic::error(clash).with_location(at));
                continue;
            }
            remapped.push((when, key, word.clone()));
            if let Some(orphan) = map.remap(when, key, action)
                && action.is_some()
            {
                let message = format!(
                    "{key} is now {word} in {}, and no key is left for {}",
                    when.name,
                    orphan.name()
                );
                let problem = Diagnostic::warning(message)
                    .with_hint("bind another key to it")
                    .with_location(at);
                lost.push((when, orphan, problem));
            }
        }
    }
    // Another line may have given it a key.
    let orphans = lost.into_iter().filter(|(when, orphan, _)| {
        !map.bindings(when).iter().any(|binding| binding.action == *orphan)
    });
    problems.extend(orphans.map(|(.., problem)| problem));
}

/// What a key is to do: an action, by its name, or a program.
fn bound_to(value: &ConfigNode, map: &mut Keymap) -> Result<(String, Option<Action>), Diagnostic> {
    if let Some(run) = value.get("run") {
        let argv: Vec<String> = match run.as_list() {
            Ok(words) => words.iter().map(ConfigNode::as_scalar_text).collect::<Result<_, _>>()?,
            Err(_) => vec![run.as_scalar_text()?],
        };
        let number = u8::try_from(map.programs.len()).ok();
        let (Some(program), Some(number)) = (argv.first().cloned(), number) else {
            return Err(Diagnostic::error("expected a program and its arguments")
                .with_location(run.location()));
        };
        map.programs.push(argv);
        return Ok((program, Some(Action::Program(number))));
    }
    if value.is_null() {
        return Ok(("none".to_owned(), None));
    }
    let word = value.as_scalar_text()?;
    let action = Action::from_name(&word);
    if action.is_none() && word != "none" {
        return Err(Diagnostic::error(format!("unknown action '{word}'"))
            .with_hint("the console's command list (:) shows the names")
            .with_location(value.location()));
    }
    Ok((word, action))
}

pub fn schema() -> Value {
    let context = |table: &KeyContext| {
        let about = format!("Keys of '{}'", table.title);
        let bindings = json!({ "$ref": "#/$defs/bindings", "description": about });
        (table.name.to_owned(), bindings)
    };
    let contexts: Map<String, Value> = KEY_TABLES.iter().map(context).collect();
    let rows = KEY_TABLES.iter().flat_map(|table| table.rows);
    let mut actions: Vec<String> = rows.map(|row| row.action.name()).collect();
    actions.sort_unstable();
    actions.dedup();
    actions.insert(0, "none".to_owned());
    let colour = |(name, _): (&str, Role)| {
        (name.to_owned(), json!({ "type": ["string", "integer"], "description": "" }))
    };
    let colours: Map<String, Value> = ROLES.into_iter().map(colour).collect();
    let switch = |about: &str, default: bool| json!({ "type": "boolean", "default": default, "description": about });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "toolhost: the console (console.yaml)",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "theme": {
                "enum": ColourScheme::ALL.map(ColourScheme::name),
                "default": ColourScheme::default().name(),
                "description": "Colours; the palette in the console tries others for as long as it runs",
            },
            "colours": { "$ref": "#/$defs/colours", "description": "Your own colours, by role" },
            "ascii": switch("Draw with ASCII characters only", false),
            "reduced_motion": switch("Disable spinners and other motion", false),
            "mouse": switch("Use the mouse: click rows and views, scroll; with Shift the terminal selects text", true),
            "clock": switch("Show the time of day in the top bar", true),
            "image": { "$ref": "#/$defs/image", "description": "Pictures in results" },
            "keys": {
                "$ref": "#/$defs/keys",
                "description": "Custom key bindings, by context",
            },
        },
        "$defs": {
            "colours": {
                "type": "object",
                "description": "A name such as red or light-blue, a number of the 256 colours, or '#ff8800'",
                "additionalProperties": false,
                "properties": colours,
            },
            "image": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "inline": {
                        "enum": IMAGES,
                        "default": "auto",
                        "description": "auto shows them as coloured half blocks; never decodes none",
                    },
                },
            },
            "keys": {
                "type": "object",
                "properties": contexts,
                "additionalProperties": false,
            },
            "bindings": {
                "type": "object",
                "description": "Maps a key such as x, X, ctrl-x, alt-x, f5, enter, space or page-up to its action",
                "additionalProperties": {
                    "anyOf": [{ "$ref": "#/$defs/action" }, { "$ref": "#/$defs/program" }],
                },
            },
            "program": {
                "type": "object",
                "additionalProperties": false,
                "required": ["run"],
                "properties": {
                    "run": {
                        "type": ["string", "array"],
                        "items": { "type": "string" },
                        "description": "A program and its arguments; it reads the chosen tool with its last arguments and result as JSON, and what it prints first is shown",
                    },
                },
            },
            "action": { "enum": actions },
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tui::views::tools;

    fn settings(text: &str) -> (ConsoleSettings, Vec<String>) {
        let source = SourceText::new("console.yaml", text);
        let (settings, problems) = read(&source, text, Appearance::default());
        let said = problems.iter().map(|problem| {
            let place = problem.location.as_ref().unwrap();
            format!("{}:{}: {}", place.line, place.column, problem.message)
        });
        (settings, said.collect())
    }

    #[test]
    fn everything_can_be_set() {
        let (settings, problems) = settings(
            "theme: light\nmouse: false\nreduced_motion: true\nascii: true\nkeys:\n  tools: { c: fill, ctrl-k: none }\n  anywhere:\n    f2: palette\n",
        );
        assert_eq!(problems, [""; 0]);
        let look = settings.look;
        assert_eq!(look.palette, ColourScheme::Light);
        assert!(!look.mouse && look.has_reduced_motion && look.ascii);
        assert_eq!(settings.keys.action(KeyPress::F(2), &[&ANYWHERE]), Some(Action::Palette));
        assert_eq!(settings.keys.key_of(Action::Fill, &[&tools::TOOLS]), Some(KeyPress::Char('c')));
    }

    #[test]
    fn all_problems_are_told_at_once_and_the_rest_holds() {
        let text = "theme: pink\ncolour: red\nmouse: maybe\nkeys:\n  tools:\n    ctrl-k: sort\n    ^K: fill\n    hyper-x: sort\n    v: dance\n    s: change-format\n  kitchen: {}\nascii: true\n";
        let (settings, problems) = settings(text);
        assert_eq!(
            problems,
            [
                "1:8: unknown theme 'pink'",
                "2:1: unknown setting 'colour'",
                "3:8: expected true or false, found text",
                "7:5: ^K is already bound to sort in tools, not fill",
                "8:5: invalid key 'hyper-x'",
                "9:8: unknown action 'dance'",
                "11:3: unknown context 'kitchen'",
            ]
        );
        assert!(settings.look.ascii);
    }

    #[test]
    fn a_role_has_a_colour_and_a_key_a_program() {
        let (own, problems) = settings(
            "colours: { error: '#ff0000', server-1: 208, pink: red, hint: pinkish }\n\
             keys: { tools: { f5: { run: [jq, .tool] }, f6: { run: true }, f7: { run: [] } } }\n",
        );
        assert_eq!(
            problems,
            [
                "1:45: unknown role 'pink'",
                "1:62: invalid colour 'pinkish'",
                "2:74: expected a program and its arguments",
            ]
        );
        assert_eq!(own.look.own.0[5], Some(Color::Rgb(255, 0, 0)));
        assert_eq!(own.look.own.0[20], Some(Color::Indexed(208)));
        let bound = |key| own.keys.action(KeyPress::F(key), &[&tools::TOOLS]);
        assert_eq!((bound(5), bound(6)), (Some(Action::Program(0)), Some(Action::Program(1))));
        assert_eq!(own.keys.programs, [vec!["jq", ".tool"], vec!["true"]]);
    }

    #[test]
    fn an_action_that_lost_its_key_is_named() {
        let (_, problems) = settings("keys: { tools: { s: change-format } }");
        assert_eq!(
            problems,
            ["1:18: s is now change-format in tools, and no key is left for sort"]
        );
        let (_, problems) = settings("keys: { tools: { s: change-format, o: sort } }");
        assert_eq!(problems, [""; 0]);
    }

    proptest! {
        #[test]
        fn no_file_breaks_it(text in "(theme|keys|tools|anywhere|ctrl-p|[a-z{}:,\\[\\]\"'\n -]){0,60}") {
            settings_of(&text);
        }

        #[test]
        fn no_map_of_keys_breaks_it(keys in prop::collection::vec(("(tools|form|anywhere|x)", ".{1,6}", "[a-z-]{1,8}"), 0..8)) {
            let lines: Vec<String> = keys.iter().map(|(place, key, action)| {
                format!("  {place}: {{ {}: {action} }}\n", serde_json::Value::from(key.as_str()))
            }).collect();
            settings_of(&format!("keys:\n{}", lines.concat()));
        }
    }

    fn settings_of(text: &str) {
        let source = SourceText::new("console.yaml", text);
        let (settings, _) = read(&source, text, Appearance::default());
        assert!(
            settings.keys.action(KeyPress::Ctrl('c'), &[&ANYWHERE]).is_some()
                || text.contains("any")
        );
    }
}

#[cfg(test)]
mod settings_schema_tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let source = SourceText::new("console.yaml", text);
        let (_, problems) = read(&source, text, Appearance::default());
        problems.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn every_key_of_the_schema_is_read_and_every_other_one_refused() {
        let schema = schema();
        let properties = schema["properties"].as_object().unwrap();
        for (key, shape) in properties {
            let value = match shape.get("default") {
                Some(default) => default.to_string(),
                None => "{}".to_owned(),
            };
            assert_eq!(problems(&format!("{key}: {value}\n")), [""; 0], "{key}");
        }
        let source = SourceText::new("console.yaml", "x: 1");
        let diagnostics = read(&source, "x: 1", Appearance::default()).1;
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        assert!(
            diagnostics[0].hint.as_ref().unwrap().ends_with(&names.join(", ")),
            "{:?}",
            diagnostics[0].hint
        );
        let contexts = schema["$defs"]["keys"]["properties"].as_object().unwrap();
        for context in contexts.keys() {
            assert_eq!(problems(&format!("keys: {{ {context}: {{}} }}")), [""; 0], "{context}");
        }
        for action in schema["$defs"]["action"]["enum"].as_array().unwrap() {
            let problems = problems(&format!("keys: {{ stats: {{ f12: {action} }} }}"));
            assert_eq!(problems, [""; 0], "{action}");
        }
    }
}
