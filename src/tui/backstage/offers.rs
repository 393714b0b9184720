//! Asks servers for what they offer beside tools, reads and fills in, and listens to changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Backstage, files};
use crate::catalogue::ServerListing;
use crate::host::ToolHost;
use crate::model::{Fault, Problem, Wanted};
use crate::tui::event::Event;
use crate::tui::event::offers::{Followed, Lists, News, Wish};
use crate::util::base64;
use crate::util::moment::stamp;
use crate::util::private;
use crate::util::targets::targets;

/// How many changes of a resource wait to be told; more are counted where they come in.
const WAITING: usize = 16;

/// What is under way.
#[derive(Default)]
pub(super) struct UnderWay {
    /// The one thing that is being read or filled in.
    request: CancellationToken,
    followed: HashMap<Followed, CancellationToken>,
}

impl UnderWay {
    /// Gives all of it up: the host it was asked of is replaced.
    pub(super) fn cancel_all(&mut self) {
        std::mem::take(&mut self.request).cancel();
        self.followed.drain().for_each(|(_, cancel)| cancel.cancel());
    }
}

impl Backstage {
    pub(super) fn offers(&mut self, wish: Wish) {
        let host = Arc::clone(&self.around.host);
        match wish {
            Wish::ListAll => {
                let servers: Vec<String> =
                    host.servers().into_iter().map(|server| server.name).collect();
                let (send, all) = (self.send.clone(), servers.clone());
                tokio::spawn(async move {
                    // Before the first of them answers.
                    let _gone = send.send(Event::Offers(News::Servers(all))).await;
                    for server in servers {
                        let (host, send) = (Arc::clone(&host), send.clone());
                        tokio::spawn(async move { send.send(listed(&host, server).await).await });
                    }
                });
            }
            Wish::List(server) => self.tell(async move { listed(&host, server).await }),
            Wish::Read { ticket, server, uri } => {
                let cancel = self.next_request();
                self.tell(async move {
                    let read = host.read(&uri, &[server], &cancel).await;
                    Event::Offers(News::Read(ticket, Box::new(read)))
                });
            }
            Wish::Get { ticket, server, name, arguments } => {
                let cancel = self.next_request();
                self.tell(async move {
                    let got = host.prompt(&name, &arguments, &[server], &cancel).await;
                    Event::Offers(News::Got(ticket, Box::new(got)))
                });
            }
            Wish::GiveUp => drop(self.next_request()),
            Wish::Complete { server, query } => self.tell(async move {
                let cancel = CancellationToken::new();
                let done = host.complete(query.clone(), &[server], &cancel).await;
                Event::Offers(News::Completed(query, done))
            }),
            Wish::Follow(followed) => self.follow(followed),
            Wish::Unfollow(followed) => {
                if let Some(cancel) = self.offers.followed.remove(&followed) {
                    cancel.cancel();
                }
            }
            Wish::Save(parts) => {
                let name = format!("resource-{}", stamp(self.around.clock.unix()));
                let path = self.around.cwd.join(name);
                let work = tokio::task::spawn_blocking(move || save(&path, &parts));
                self.tell(async move {
                    work.await.unwrap_or_else(|error| Event::Said {
                        text: format!("nothing was written: {error}"),
                        is_bad: true,
                    })
                });
            }
        }
    }

    fn next_request(&mut self) -> CancellationToken {
        let next = CancellationToken::new();
        std::mem::replace(&mut self.offers.request, next.clone()).cancel();
        next
    }

    fn follow(&mut self, followed: Followed) {
        let cancel = CancellationToken::new();
        if let Some(before) = self.offers.followed.insert(followed.clone(), cancel.clone()) {
            before.cancel();
        }
        let (host, send) = (Arc::clone(&self.around.host), self.send.clone());
        self.tell(async move {
            let (sender, mut seen) = mpsc::channel(WAITING);
            let wanted = Wanted { lists: Vec::new(), uris: vec![followed.uri.clone()] };
            let following = async {
                let outcome =
                    host.follow(vec![(followed.server.clone(), wanted)], &sender, &cancel).await;
                drop(sender);
                outcome
            };
            let telling = async {
                while let Some(seen) = seen.recv().await {
                    let news = News::Told(followed.clone(), seen.change);
                    let _gone = send.send(Event::Offers(news)).await;
                }
            };
            let (outcome, ()) = tokio::join!(following, telling);
            Event::Offers(News::Unfollowed(followed.clone(), outcome.err()))
        });
    }
}

/// Everything that one server offers beside tools.
async fn listed(host: &ToolHost, server: String) -> Event {
    let only = [server.clone()];
    let (resources, templates, prompts) =
        tokio::join!(host.resources(&only), host.templates(&only), host.prompts(&only));
    let mut lists = Lists::default();
    for asked in [&resources.servers, &templates.servers, &prompts.servers] {
        note(&mut lists.faults, asked);
    }
    let problems: [Vec<Problem>; 3] = [resources.problems, templates.problems, prompts.problems];
    lists.problems = problems.into_iter().flatten().map(|problem| problem.message).collect();
    lists.resources = resources.items;
    lists.templates = templates.items;
    lists.prompts = prompts.items;
    Event::Offers(News::Listed(server, Box::new(lists)))
}

/// A server that is down says so to each question; once is enough.
fn note(faults: &mut Vec<Fault>, asked: &[ServerListing]) {
    for fault in asked.iter().filter_map(|server| server.fault.clone()) {
        if !faults.iter().any(|known| known.message() == fault.message()) {
            faults.push(fault);
        }
    }
}

/// Writes each part to a file of its own. Nothing of what the server wrote gets into a name.
fn save(path: &Path, parts: &[Value]) -> Event {
    let kind = |part: &Value| match part.get("blob") {
        Some(_) => part.get("mimeType").and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => "text/plain".to_owned(),
    };
    let kinds: Vec<String> = parts.iter().map(kind).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let mut written: Vec<String> = Vec::new();
    for (target, part) in targets(path, &kinds).into_iter().zip(parts) {
        if let Err(error) = save_one(&target, part) {
            return files::said(&target, Err(error));
        }
        written.push(target.display().to_string());
    }
    match &written[..] {
        [one] => files::said(&PathBuf::from(one), Ok::<(), String>(())),
        all => Event::Said { text: format!("written to {}", all.join(", ")), is_bad: false },
    }
}

fn save_one(target: &Path, part: &Value) -> Result<(), String> {
    let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
    let bytes = match part.get("blob") {
        Some(_) => base64::decode(text("blob")).ok_or("it is not valid base64")?,
        None => text("text").as_bytes().to_vec(),
    };
    let mut file = private::create_new(target).map_err(|error| error.to_string())?;
    std::io::Write::write_all(&mut file, &bytes).map_err(|error| error.to_string())
}
