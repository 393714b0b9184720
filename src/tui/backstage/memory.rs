//! The files of settings and memory: read once, written now and then.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Surroundings;
use crate::config::read;
use crate::host::ToolHost;
use crate::model::Problem;
use crate::tui::event::Event;
use crate::tui::event::memory::{News, Wish};
use crate::tui::memory::Memory;
use crate::tui::settings::{self, Settings};
use crate::util::{private, replace};

/// The file of what is remembered, in the directory of state.
const MEMORY: &str = "console.json";
/// The file of a person's settings, in the directory of configuration.
const SETTINGS: &str = "console.yaml";
/// The least time between two writes.
const PAUSE: Duration = Duration::from_secs(3);
/// How long the end of the console may wait for the last write.
const FAREWELL: Duration = Duration::from_secs(1);
/// The largest file of memory: far more than its bounds allow.
const LARGEST: u64 = 4 << 20;

pub(super) async fn perform(wish: Wish, around: Surroundings) -> Event {
    let Wish::Recall = wish;
    let news = tokio::task::spawn_blocking(move || {
        let mut news = News::default();
        if let Some(directory) = &around.settings {
            settings(&directory.join(SETTINGS), &mut news);
        }
        if let Some(directory) = &around.state {
            memory(&directory.join(MEMORY), &mut news);
        }
        news
    });
    Event::Memory(Box::new(news.await.unwrap_or_default()))
}

fn settings(path: &Path, news: &mut News) {
    if !path.exists() {
        return;
    }
    let read = read::read(path, false).map(|(source, text)| settings::read(&source, &text));
    let (settings, problems) = read.unwrap_or_else(|problem| (Settings::default(), vec![problem]));
    news.settings = settings;
    news.problems.extend(problems.iter().map(said));
}

/// A problem on one line, its place first.
fn said(problem: &Problem) -> String {
    let place = problem.place.as_ref().filter(|place| place.line > 0);
    let place = place.map_or_else(
        || SETTINGS.to_owned(),
        |place| format!("{SETTINGS}:{}:{}", place.line, place.column),
    );
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{place}: {}{hint}", problem.message)
}

fn memory(path: &Path, news: &mut News) {
    let Ok(about) = std::fs::metadata(path) else { return };
    let text = if about.is_file() && about.len() <= LARGEST {
        std::fs::read_to_string(path).map_err(|why| why.to_string())
    } else {
        Err("it is no file of ours".to_owned())
    };
    match text.and_then(|text| Memory::read(&text)) {
        Ok(memory) => news.memory = Some(memory),
        Err(why) => {
            let aside = path.with_extension("json.old");
            let moved = std::fs::rename(path, &aside);
            let what = if moved.is_ok() { "it is console.json.old now" } else { "it stays there" };
            news.problems.push(format!("what was remembered cannot be used: {why}; {what}"));
        }
    }
}

/// Writes what is to be remembered.
pub(super) struct Keeper {
    file: Option<PathBuf>,
    /// What is to be remembered, and the host that knows what of it is secret.
    latest: watch::Sender<Option<(Memory, Arc<ToolHost>)>>,
    writer: Option<JoinHandle<()>>,
}

impl Keeper {
    /// One that has nothing to write yet.
    pub(super) fn new(around: &Surroundings) -> Self {
        let (latest, mut changes) = watch::channel::<Option<(Memory, Arc<ToolHost>)>>(None);
        let file = around.state.as_ref().map(|state| state.join(MEMORY));
        let writer = file.clone().map(|path| {
            tokio::spawn(async move {
                while changes.changed().await.is_ok() {
                    let latest = changes.borrow_and_update().clone();
                    if let Some((memory, host)) = latest {
                        write(path.clone(), host, memory).await;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            })
        });
        Self { file, latest, writer }
    }

    /// This is to be remembered; `host` masks what is secret in it.
    pub(super) fn remember(&self, memory: Memory, host: &Arc<ToolHost>) {
        self.latest.send_replace(Some((memory, Arc::clone(host))));
    }

    /// The last thing to be remembered, if something is new. Waits for a while until it is written.
    pub(super) async fn finish(&mut self, memory: Option<Memory>, host: &Arc<ToolHost>) {
        if let Some(writer) = self.writer.take() {
            writer.abort();
        }
        let before = self.latest.send_replace(None);
        let latest = memory.map(|memory| (memory, Arc::clone(host))).or(before);
        if let (Some((memory, host)), Some(path)) = (latest, self.file.take()) {
            let written = write(path, host, memory);
            // Whoever leaves is not kept waiting by a disk.
            let _too_slow = tokio::time::timeout(FAREWELL, written).await;
        }
    }
}

/// What cannot be written is forgotten: nothing that a person asked for is lost with it.
async fn write(path: PathBuf, host: Arc<ToolHost>, memory: Memory) {
    let write = move || {
        let harmless = memory.without_secrets(|arguments, schema| host.masked(arguments, schema));
        let _turn = replace::lock(&path)?;
        private::replace(&path, harmless.text().as_bytes())
    };
    let _lost = tokio::task::spawn_blocking(write).await;
}
