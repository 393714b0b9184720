//! Listing tools and offerings: page by page with caps, item by item.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::connection::{Connection, RequestOptions};
use super::lifecycle::MODERN;
use super::message::{METHOD_NOT_FOUND, MISSING_CAPABILITY, RawJson, UNSUPPORTED_VERSION};
use super::page::{ListPage, MAX_ITEMS, PageItems};
use crate::model::{
    Diagnostic, Era, Error, ErrorPhase, OfferingListing, ToolDefinition, ToolListing,
};
use crate::util::text::truncate;

const LISTING_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_PAGES: usize = 100;
const MAX_FINDINGS: usize = 100;
/// What all definitions together may take, as JSON: pages of 16 MiB each would add up.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// An item of one of the lists that servers have.
pub trait Listable: Sized {
    const LIST: ListSpec;

    /// Reads one item: its text, and the tree of that text.
    fn read(server: &str, raw: Box<RawValue>, item: Value, modern: bool) -> Result<Self, Error>;

    /// What no two items of a list may share.
    fn key(&self) -> &str;
}

#[derive(Debug, Clone, Copy)]
pub struct ListSpec {
    pub method: &'static str,
    /// The member of the answer that holds the items.
    pub field: &'static str,
    pub capability: &'static str,
    pub singular: &'static str,
    /// Whether a server that declares the capability may still not know the method.
    pub is_method_optional: bool,
}

pub async fn tools(connection: &Connection, timeout: Duration) -> Result<ToolListing, Error> {
    let OfferingListing { items, diagnostics: problems, is_partial: partial, .. } =
        all::<ToolDefinition>(connection, timeout).await?;
    Ok(ToolListing {
        tools: items.into_iter().map(Arc::new).collect(),
        diagnostics: problems,
        is_partial: partial,
        withheld: Vec::new(),
    })
}

pub async fn all<T: Listable>(
    connection: &Connection,
    timeout: Duration,
) -> Result<OfferingListing<T>, Error> {
    let list = T::LIST;
    let mut collected = ListCollector::<T>::new(connection);
    let is_declared = connection.declares(list.capability);
    // Some servers declare nothing and offer tools; one that declares other things has none.
    let declares_others = || ["resources", "prompts"].iter().any(|name| connection.declares(name));
    if !is_declared && (list.field != "tools" || declares_others()) {
        return Ok(OfferingListing::default());
    }
    let deadline = Instant::now() + LISTING_TIMEOUT;
    let mut cursor: Option<String> = None;
    let mut cursors = HashSet::new();
    for page_number in 1..=MAX_PAGES {
        let left = deadline.saturating_duration_since(Instant::now());
        let options = RequestOptions::with_timeouts(timeout.min(left), left, ErrorPhase::List);
        let params = cursor.as_ref().map_or_else(|| json!({}), |c| json!({ "cursor": c }));
        let page = match connection.request(list.method, params, &options).await {
            Ok(raw) => raw,
            Err(error) if page_number == 1 => return first_page_failed(connection, list, error),
            Err(error) => {
                collected.mark_partial(format!("page {page_number} failed: {}", error.message()));
                break;
            }
        };
        let page = match ListPage::read(&page, list.field, list.singular) {
            Ok(page) => page,
            Err(error) if page_number == 1 => {
                return Err(connection.in_context(error, ErrorPhase::List));
            }
            Err(error) => {
                collected.mark_partial(format!("page {page_number}: {}", error.message()));
                break;
            }
        };
        if page_number == 1 {
            collected.offered.freshness = page.freshness;
        }
        let next = page.next.unwrap_or_else(|text| {
            let what = format!("nextCursor is {text}, not text; later pages are unknown");
            collected.mark_partial(what);
            None
        });
        if !is_declared && page_number == 1 && !page.items.items.is_empty() {
            let text = format!("it does not declare the {} capability", list.capability);
            connection.add_warning(&text);
        }
        // A page whose cursor leads to itself is a repetition, not a list with doubles.
        if next.is_none() || next != cursor {
            collected.add_page(page.items)?;
        }
        let Some(next) = next else { break };
        if collected.offered.items.len() >= MAX_ITEMS {
            collected.mark_partial(format!(
                "limit: {MAX_ITEMS} {}s are shown, there are more",
                list.singular
            ));
            break;
        }
        if collected.bytes >= MAX_BYTES {
            break;
        }
        if !cursors.insert(next.clone()) {
            collected.mark_partial(format!(
                "the cursor {next:?} was repeated; stopped after {page_number} pages"
            ));
            break;
        }
        if page_number == MAX_PAGES {
            collected.mark_partial(format!("limit: {MAX_PAGES} pages were read, there are more"));
        }
        cursor = Some(next);
    }
    Ok(collected.finish())
}

/// A server without such a list says so by not knowing the method; that is an empty list.
fn first_page_failed<T>(
    connection: &Connection,
    list: ListSpec,
    error: Error,
) -> Result<OfferingListing<T>, Error> {
    let unknown = list.is_method_optional || !connection.declares(list.capability);
    match error.rpc_code() {
        Some(METHOD_NOT_FOUND) if unknown => Ok(OfferingListing::default()),
        Some(code @ (UNSUPPORTED_VERSION | MISSING_CAPABILITY))
            if connection.agreement.era == Era::Modern =>
        {
            Err(Error::protocol(format!(
                "the server offers {MODERN} and then refuses it (error {code})"
            ))
            .with_detail(error.message())
            .with_phase(ErrorPhase::List)
            .with_hint("try `protocol: legacy` in its entry"))
        }
        _ => Err(error),
    }
}

struct ListCollector<'a, T> {
    connection: &'a Connection,
    offered: OfferingListing<T>,
    keys: HashSet<String>,
    bytes: usize,
    dropped_findings: usize,
}

impl<'a, T: Listable> ListCollector<'a, T> {
    fn new(connection: &'a Connection) -> Self {
        let offered = OfferingListing::default();
        Self { connection, offered, keys: HashSet::new(), bytes: 0, dropped_findings: 0 }
    }

    fn mark_partial(&mut self, reason: String) {
        self.offered.is_partial = true;
        if self.offered.diagnostics.len() < MAX_FINDINGS {
            self.offered
                .diagnostics
                .push(Diagnostic::error(reason).with_entry(&self.connection.server));
        } else {
            self.dropped_findings += 1;
        }
    }

    fn finish(mut self) -> OfferingListing<T> {
        if self.dropped_findings > 0 {
            let text = format!("and {} more findings like these", self.dropped_findings);
            self.offered
                .diagnostics
                .push(Diagnostic::error(text).with_entry(&self.connection.server));
        }
        self.offered
    }

    fn add_page(&mut self, items: PageItems) -> Result<(), Error> {
        let ListSpec { singular: one, .. } = T::LIST;
        let modern = self.connection.agreement.era == Era::Modern;
        if items.skipped > 0 {
            self.mark_partial(format!(
                "limit: {MAX_ITEMS} {one}s of a page are read, there are more"
            ));
        }
        for item in items.items {
            if self.offered.items.len() >= MAX_ITEMS {
                return Ok(());
            }
            self.bytes += item.get().len();
            if self.bytes > MAX_BYTES {
                self.mark_partial(format!(
                    "limit: the {one}s take more than {} MiB",
                    MAX_BYTES >> 20
                ));
                return Ok(());
            }
            let item = RawJson(item);
            if item.holds_too_many_values() {
                let text = truncate(item.get(), 60);
                self.mark_partial(format!(
                    "limit: a {one}'s definition holds too many values: {text}"
                ));
                continue;
            }
            let in_list = |error| self.connection.in_context(error, ErrorPhase::List);
            let value = item.parse().map_err(in_list)?;
            match T::read(&self.connection.server, item.0, value, modern) {
                Ok(item) => self.add(item),
                Err(error) => self.mark_partial(error.message().to_owned()),
            }
        }
        Ok(())
    }

    fn add(&mut self, item: T) {
        let key = item.key().to_owned();
        if self.keys.insert(key.clone()) {
            self.offered.items.push(item);
        } else {
            let item = T::LIST.singular;
            let text = format!("it lists the {item} \"{key}\" twice; the first one counts");
            self.connection.add_warning(&text);
        }
    }
}
