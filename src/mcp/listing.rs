//! Listing what a server offers: page by page with caps, item by item.
//!
//! Owns: paging and its bounds, once for every list. One malformed item costs that item; what
//! could be read is kept and marked partial. A cursor is only ever judged by being repeated, since
//! the specification gives its value no meaning. Never does: know what makes an item acceptable.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::connection::{Connection, RequestOptions};
use super::lifecycle::MODERN;
use super::message::{self, Raw, error_code};
use super::page::{ITEMS, Items, Next, Page};
use crate::model::{Era, Fault, Listing, Offered, Phase, Problem, ToolDefinition};

/// Bounds of one listing.
const TOTAL: Duration = Duration::from_secs(30);
const PAGES: usize = 100;
/// How many findings about single items are kept.
const FINDINGS: usize = 100;
/// What all definitions together may take, as JSON: pages of 16 MiB each would add up.
const BYTES: usize = 32 * 1024 * 1024;

/// Something that servers list.
pub trait Item: Sized {
    /// The list it stands in.
    const LIST: List;

    /// Reads one item: its text, and the tree of that text.
    ///
    /// # Errors
    /// Why it is none, in words that name it as far as possible.
    fn read(server: &str, raw: Box<RawValue>, item: Value, modern: bool) -> Result<Self, String>;

    /// What no two items of a list may share.
    fn key(&self) -> &str;
}

/// How one list is asked for and spoken of.
#[derive(Debug, Clone, Copy)]
pub struct List {
    /// The method that asks for it.
    pub method: &'static str,
    /// The member of the answer that holds the items.
    pub field: &'static str,
    /// The capability by which a server declares it.
    pub capability: &'static str,
    /// One item, in words.
    pub one: &'static str,
    /// Several items, in words.
    pub many: &'static str,
    /// Whether it is asked for although the server does not declare it.
    pub undeclared: bool,
    /// Whether a server that declares the capability may still not know the method.
    pub optional: bool,
}

/// Lists all tools.
///
/// # Errors
/// When not even the first page could be had.
pub async fn tools(
    connection: &Connection,
    server: &str,
    timeout: Duration,
) -> Result<Listing, Fault> {
    let Offered { items, problems, partial, .. } =
        all::<ToolDefinition>(connection, server, timeout).await?;
    Ok(Listing { tools: items.into_iter().map(Arc::new).collect(), problems, partial })
}

/// Lists everything of one sort.
///
/// # Errors
/// When not even the first page could be had.
pub async fn all<T: Item>(
    connection: &Connection,
    server: &str,
    timeout: Duration,
) -> Result<Offered<T>, Fault> {
    let list = T::LIST;
    let mut collected = Collected::<T>::new(connection, server);
    if !connection.declares(list.capability) {
        if !list.undeclared {
            return Ok(Offered::default());
        }
        connection.doubt(format!("it does not declare the {} capability", list.capability));
    }
    let deadline = Instant::now() + TOTAL;
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for page_number in 1..=PAGES {
        let left = deadline.saturating_duration_since(Instant::now());
        let options = RequestOptions::within(timeout.min(left), left, Phase::List);
        let params = cursor.as_ref().map_or_else(|| json!({}), |c| json!({ "cursor": c }));
        let page = match connection.request(list.method, params, &options).await {
            Ok(raw) => raw,
            Err(fault) if page_number == 1 => return first_page_failed(connection, list, fault),
            Err(fault) => {
                collected.cut(format!("page {page_number} failed: {}", fault.message()));
                break;
            }
        };
        let page = match Page::read(&page, list.field, list.one) {
            Ok(page) => page,
            Err(fault) if page_number == 1 => return Err(fault.server(server).phase(Phase::List)),
            Err(fault) => {
                collected.cut(format!("page {page_number}: {}", fault.message()));
                break;
            }
        };
        if page_number == 1 {
            collected.offered.freshness = page.freshness;
        }
        let next = match page.next {
            Next::Nothing => None,
            Next::Cursor(next) => Some(next),
            Next::Nonsense(text) => {
                collected.cut(format!("nextCursor is {text}, not text; later pages are unknown"));
                None
            }
        };
        // A page whose cursor leads to itself is a repetition, not a list with doubles.
        if next.is_none() || next != cursor {
            collected.take(page.items)?;
        }
        let Some(next) = next else { break };
        if collected.offered.items.len() >= ITEMS {
            collected.cut(format!("limit: {ITEMS} {} of more are shown", list.many));
            break;
        }
        if collected.bytes >= BYTES {
            break;
        }
        if !seen.insert(next.clone()) {
            collected
                .cut(format!("the cursor {next:?} came twice; stopped after {page_number} pages"));
            break;
        }
        if page_number == PAGES {
            collected.cut(format!("limit: {PAGES} pages of more were read"));
        }
        cursor = Some(next);
    }
    Ok(collected.done())
}

/// A server without such a list says so by not knowing the method; that is an empty list.
fn first_page_failed<T>(
    connection: &Connection,
    list: List,
    fault: Fault,
) -> Result<Offered<T>, Fault> {
    let unknown = list.optional || !connection.declares(list.capability);
    match error_code(&fault) {
        Some(-32601) if unknown => Ok(Offered::default()),
        Some(code @ (-32022 | -32021)) if connection.agreement.era == Era::Modern => {
            Err(Fault::protocol(format!(
                "the server offers {MODERN} and then refuses it (error {code})"
            ))
            .detail(fault.message())
            .phase(Phase::List)
            .hint("try `protocol: legacy` in its entry"))
        }
        _ => Err(fault),
    }
}

struct Collected<'a, T> {
    connection: &'a Connection,
    server: &'a str,
    offered: Offered<T>,
    keys: HashSet<String>,
    bytes: usize,
    unsaid: usize,
}

impl<'a, T: Item> Collected<'a, T> {
    fn new(connection: &'a Connection, server: &'a str) -> Self {
        let offered = Offered::default();
        Self { connection, server, offered, keys: HashSet::new(), bytes: 0, unsaid: 0 }
    }

    fn cut(&mut self, reason: String) {
        self.offered.partial = true;
        if self.offered.problems.len() < FINDINGS {
            self.offered.problems.push(Problem::error(reason).entry(self.server));
        } else {
            self.unsaid += 1;
        }
    }

    fn done(mut self) -> Offered<T> {
        if self.unsaid > 0 {
            let text = format!("and {} more findings like these", self.unsaid);
            self.offered.problems.push(Problem::error(text).entry(self.server));
        }
        self.offered
    }

    /// Takes the items of one page.
    ///
    /// # Errors
    /// When an item nests too deep: nothing about such a list can be trusted.
    fn take(&mut self, items: Items) -> Result<(), Fault> {
        let List { one, many, .. } = T::LIST;
        let modern = self.connection.agreement.era == Era::Modern;
        if items.skipped > 0 {
            self.cut(format!("limit: {ITEMS} {many} of a page are read, and it holds more"));
        }
        for item in items.kept {
            if self.offered.items.len() >= ITEMS {
                return Ok(());
            }
            self.bytes += item.get().len();
            if self.bytes > BYTES {
                self.cut(format!("limit: the {many} take more than {} MiB", BYTES >> 20));
                return Ok(());
            }
            let item = Raw(item);
            if item.holds_too_many_values() {
                let text = message::head(item.get(), 60);
                self.cut(format!("limit: a {one}'s definition holds too many values: {text}"));
                continue;
            }
            let value = item.parse().map_err(|f| f.server(self.server).phase(Phase::List))?;
            match T::read(self.server, item.0, value, modern) {
                Ok(item) => self.add(item),
                Err(reason) => self.cut(reason),
            }
        }
        Ok(())
    }

    fn add(&mut self, item: T) {
        let key = item.key().to_owned();
        if self.keys.insert(key.clone()) {
            self.offered.items.push(item);
        } else {
            let one = T::LIST.one;
            self.connection
                .doubt(format!("it lists the {one} \"{key}\" twice; the first one counts"));
        }
    }
}
