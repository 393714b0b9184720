//! Reads the calls of the past; on a thread of its own, because files may be large and slow.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use super::{Backstage, Surroundings, files};
use crate::history::compare::Comparison;
use crate::history::read::{self, Filter, Found, Lookup};
use crate::history::{Entry, json};
use crate::model::Fault;
use crate::tui::event::Event;
use crate::tui::event::history::{News, Past, Session, Wanted, Wish};
use crate::util::append::Location;
use crate::util::json as text;
use crate::util::moment::{local_time, stamp};
use crate::util::private;
use crate::util::segments::Backwards;

impl Backstage {
    pub(super) fn history(&self, wish: Wish) {
        let around = self.around.clone();
        match wish {
            Wish::Open(id) => {
                let send = self.send.clone();
                self.tell(async move {
                    let (asked, place) = (id.clone(), around.clone());
                    let found = blocking(move || entry(&place, &asked)).await;
                    let entry = match found {
                        Ok(entry) => entry,
                        Err(fault) => return Event::History(News::Missing(id, fault)),
                    };
                    // It is shown before anybody is asked what the tool is like now.
                    let shown = Event::History(News::Entry(Box::new(entry.clone())));
                    let _gone = send.send(shown).await;
                    Event::History(News::Judged(id, around.host.has_changed_since(&entry).await))
                });
            }
            Wish::Read { wanted, limit } => self.tell(async move {
                let found = blocking(move || newest(&around, &wanted, limit)).await;
                Event::History(found.unwrap_or_else(News::Unread))
            }),
            Wish::Compare(one, other) => self.tell(async move {
                let compared = blocking(move || {
                    Ok(Comparison::of(&entry(&around, &one)?, &entry(&around, &other)?))
                });
                Event::History(match compared.await {
                    Ok(comparison) => News::Compared(Box::new(comparison)),
                    Err(fault) => News::Incomparable(fault),
                })
            }),
            Wish::Export(ids) => self.tell(async move {
                let name = format!("history-{}.jsonl", stamp(around.clock.unix()));
                let path = around.cwd.join(name);
                let target = path.clone();
                let written = blocking(move || export(&around, &ids, &target)).await;
                files::said(&path, written.map_err(|fault| fault.message().to_owned()))
            }),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Fault::internal(format!("it was given up: {error}"))))
}

fn place(around: &Surroundings) -> Result<&Location, Fault> {
    around.history.as_ref().ok_or_else(|| {
        Fault::internal("there is no home directory, and so no history")
            .hint("history: { path: FILE } in tools.yaml names one")
    })
}

fn lines(around: &Surroundings) -> Result<Backwards, Fault> {
    Backwards::all(place(around)?).map_err(read::unreadable)
}

fn newest(around: &Surroundings, wanted: &Wanted, limit: usize) -> Result<News, Fault> {
    let filter = Filter {
        since: wanted.since.map(|since| since.unix(around.clock.unix())),
        tool: wanted.tool.clone(),
        failed: wanted.failed,
        session: wanted.session.as_ref().map(|session| match session {
            Session::This => around.host.session().to_owned(),
            Session::Named(id) => id.clone(),
        }),
    };
    let found = read::select(lines(around)?, &filter, limit, past).map_err(read::unreadable)?;
    let Found { entries: calls, damaged, more } = found;
    Ok(News::Read { calls, damaged, more, is_kept: around.keeps_history })
}

fn past(entry: Entry) -> Past {
    let (time, duration) = (local_time(entry.unix), entry.duration());
    let arguments = match &entry.arguments {
        Some(arguments) => text::short(arguments),
        None => "(too large to be kept)".to_owned(),
    };
    Past {
        time,
        duration,
        arguments,
        id: entry.id,
        tool: entry.tool,
        source: entry.server.or(entry.source).unwrap_or_default(),
        fault: entry.fault.map(|fault| fault.kind),
    }
}

fn entry(around: &Surroundings, id: &str) -> Result<Entry, Fault> {
    match read::find(lines(around)?, id).map_err(read::unreadable)? {
        Lookup::One(entry) if entry.id == id => Ok(*entry),
        _ => Err(Fault::usage("this call is not in the history any more")),
    }
}

fn export(around: &Surroundings, ids: &[String], path: &Path) -> Result<(), Fault> {
    let mut wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let mut file = private::create_new(path).map_err(|error| unwritten(&error))?;
    let mut failed = None;
    // One at a time: together they may be more than there is room for.
    for line in lines(around)? {
        if wanted.is_empty() || failed.is_some() {
            break;
        }
        let only = std::iter::once(line);
        let each = |entry: Entry| {
            if wanted.remove(entry.id.as_str()) {
                let line = text::compact(&json::whole(&entry));
                failed = io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).err();
            }
        };
        read::select(only, &Filter::default(), 1, each).map_err(read::unreadable)?;
    }
    failed.map_or(Ok(()), |error| Err(unwritten(&error)))
}

fn unwritten(error: &io::Error) -> Fault {
    Fault::internal(error.to_string())
}
