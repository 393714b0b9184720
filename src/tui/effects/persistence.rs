//! Reads the settings, and what the history has for the forms, once.

use std::collections::HashMap;
use std::path::Path;

use super::ConsoleDeps;
use super::history::lines;
use crate::config::read;
use crate::history::HistoryEntry;
use crate::history::read::select;
use crate::host::rerun;
use crate::model::{CallFilter, Diagnostic, JsonObject};
use crate::tui::event::AppEvent;
use crate::tui::event::persistence::{PersistenceEffect, PersistenceEvent};
use crate::tui::settings::{self, ConsoleSettings};

const NEWEST_CALLS: usize = 500;

pub(super) async fn perform(effect: PersistenceEffect, deps: ConsoleDeps) -> AppEvent {
    let PersistenceEffect::Load = effect;
    let event = tokio::task::spawn_blocking(move || {
        let mut event = PersistenceEvent::default();
        if let Some(directory) = &deps.settings {
            settings(&directory.join(settings::FILE), &mut event);
        }
        event.arguments = last_arguments(&deps);
        event
    });
    AppEvent::Persistence(Box::new(event.await.unwrap_or_default()))
}

fn last_arguments(deps: &ConsoleDeps) -> HashMap<String, JsonObject> {
    let mut last = HashMap::new();
    let Ok(lines) = lines(deps) else { return last };
    let filter = CallFilter { project: deps.project_root.clone(), ..CallFilter::default() };
    let each = |entry: HistoryEntry| {
        // What another tool made of its own arguments was not written by a person.
        if let (None, Some(arguments)) = (entry.parent, entry.arguments) {
            last.entry(entry.tool).or_insert_with(|| rerun::without_masked(&arguments).0);
        }
    };
    let _unread = select(lines, &filter, NEWEST_CALLS, each);
    last
}

fn settings(path: &Path, event: &mut PersistenceEvent) {
    if !path.exists() {
        return;
    }
    let read = read::read(path, false).map(|(source, text)| settings::read(&source, &text));
    let (settings, problems) =
        read.unwrap_or_else(|problem| (ConsoleSettings::default(), vec![problem]));
    event.settings = settings;
    event.problems.extend(problems.iter().map(one_line_problem));
}

fn one_line_problem(problem: &Diagnostic) -> String {
    let place = problem.location.as_ref().filter(|place| place.line > 0);
    let place = place.map_or_else(
        || settings::FILE.to_owned(),
        |place| format!("{}:{}:{}", settings::FILE, place.line, place.column),
    );
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{place}: {}{hint}", problem.message)
}
