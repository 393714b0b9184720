//! Listing a server's tools: page by page with caps, item by item.
//!
//! Owns: paging and its bounds. One malformed item costs that item; what could be read is kept
//! and marked partial. A cursor is only ever judged by being repeated, since the specification
//! gives its value no meaning.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::connection::{Connection, RequestOptions};
use super::definition;
use super::few::Few;
use super::lifecycle::MODERN;
use super::message::{self, Raw, error_code};
use crate::model::{Era, Fault, Listing, Phase, Problem, ToolDefinition};

/// Bounds of one listing.
const TOTAL: Duration = Duration::from_secs(30);
const PAGES: usize = 100;
const TOOLS: usize = 25_000;
/// How many findings about single items are kept.
const FINDINGS: usize = 100;
/// What all definitions together may take, as JSON: pages of 16 MiB each would add up.
const BYTES: usize = 32 * 1024 * 1024;

/// Lists all tools.
///
/// # Errors
/// When not even the first page could be had.
pub async fn tools(
    connection: &Connection,
    server: &str,
    timeout: Duration,
) -> Result<Listing, Fault> {
    let mut collected = Collected::new(connection, server);
    if connection.agreement.capabilities.get("tools").is_none() {
        connection.doubt("it does not declare the tools capability");
    }
    let deadline = Instant::now() + TOTAL;
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for page_number in 1..=PAGES {
        let left = deadline.saturating_duration_since(Instant::now());
        let options = RequestOptions::within(timeout.min(left), left, Phase::List);
        let params = cursor.as_ref().map_or_else(|| json!({}), |c| json!({ "cursor": c }));
        let page = match connection.request("tools/list", params, &options).await {
            Ok(raw) => raw,
            Err(fault) if page_number == 1 => return first_page_failed(connection, fault),
            Err(fault) => {
                collected.cut(format!("page {page_number} failed: {}", fault.message()));
                break;
            }
        };
        let page = match Page::read(&page) {
            Ok(page) => page,
            Err(fault) if page_number == 1 => return Err(fault.server(server).phase(Phase::List)),
            Err(fault) => {
                collected.cut(format!("page {page_number}: {}", fault.message()));
                break;
            }
        };
        let next = match page.next() {
            Next::Nothing => None,
            Next::Cursor(next) => Some(next),
            Next::Nonsense(text) => {
                collected.cut(format!("nextCursor is {text}, not text; later pages are unknown"));
                None
            }
        };
        // A page whose cursor leads to itself is a repetition, not a list with doubles.
        if next.is_none() || next != cursor {
            collected.take(page.tools)?;
        }
        let Some(next) = next else { break };
        if collected.listing.tools.len() >= TOOLS {
            collected.cut(format!("limit: {TOOLS} tools of more are shown"));
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

/// A server without tools says so by not knowing the method; that is an empty list.
fn first_page_failed(connection: &Connection, fault: Fault) -> Result<Listing, Fault> {
    let no_tools = connection.agreement.capabilities.get("tools").is_none();
    match error_code(&fault) {
        Some(-32601) if no_tools => Ok(Listing::default()),
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

/// One page, its items still text.
#[derive(Deserialize)]
struct Page {
    tools: Items,
    #[serde(default, rename = "nextCursor")]
    next_cursor: Option<Box<RawValue>>,
}

/// The items of a page, as far as they may be listed.
type Items = Few<Box<RawValue>, TOOLS>;

enum Next {
    Nothing,
    Cursor(String),
    Nonsense(String),
}

impl Page {
    fn read(raw: &Raw) -> Result<Self, Fault> {
        serde_json::from_str(raw.get())
            .map_err(|error| Fault::protocol(format!("not a tool list: {error}")))
    }

    fn next(&self) -> Next {
        match self.next_cursor.as_ref().map(|raw| serde_json::from_str(raw.get())) {
            None | Some(Ok(Value::Null)) => Next::Nothing,
            Some(Ok(Value::String(cursor))) => Next::Cursor(cursor),
            Some(Ok(other)) => Next::Nonsense(other.to_string()),
            Some(Err(error)) => Next::Nonsense(error.to_string()),
        }
    }
}

struct Collected<'a> {
    connection: &'a Connection,
    server: &'a str,
    listing: Listing,
    names: HashSet<String>,
    bytes: usize,
    unsaid: usize,
}

impl<'a> Collected<'a> {
    fn new(connection: &'a Connection, server: &'a str) -> Self {
        let listing = Listing::default();
        Self { connection, server, listing, names: HashSet::new(), bytes: 0, unsaid: 0 }
    }

    fn cut(&mut self, reason: String) {
        self.listing.partial = true;
        if self.listing.problems.len() < FINDINGS {
            self.listing.problems.push(Problem::error(reason).entry(self.server));
        } else {
            self.unsaid += 1;
        }
    }

    fn done(mut self) -> Listing {
        if self.unsaid > 0 {
            let text = format!("and {} more findings like these", self.unsaid);
            self.listing.problems.push(Problem::error(text).entry(self.server));
        }
        self.listing
    }

    /// Takes the tools of one page.
    ///
    /// # Errors
    /// When an item nests too deep: nothing about such a list can be trusted.
    fn take(&mut self, items: Items) -> Result<(), Fault> {
        let modern = self.connection.agreement.era == Era::Modern;
        if items.skipped > 0 {
            self.cut(format!("limit: {TOOLS} tools of a page are read, and it holds more"));
        }
        for item in items.kept {
            if self.listing.tools.len() >= TOOLS {
                return Ok(());
            }
            self.bytes += item.get().len();
            if self.bytes > BYTES {
                self.cut(format!("limit: the tools take more than {} MiB", BYTES >> 20));
                return Ok(());
            }
            let item = Raw(item);
            if item.holds_too_many_values() {
                let text = message::head(item.get(), 60);
                self.cut(format!("limit: a tool's definition holds too many values: {text}"));
                continue;
            }
            let value = item.parse().map_err(|f| f.server(self.server).phase(Phase::List))?;
            match definition::read(self.server, item.0, value, modern) {
                Ok(tool) => self.add(tool),
                Err(reason) => self.cut(reason),
            }
        }
        Ok(())
    }

    fn add(&mut self, tool: ToolDefinition) {
        let name = tool.name.tool().to_owned();
        if self.names.insert(name.clone()) {
            self.listing.tools.push(tool);
        } else {
            self.connection
                .doubt(format!("it lists the tool \"{name}\" twice; the first one counts"));
        }
    }
}
