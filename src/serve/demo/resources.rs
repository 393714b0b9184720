//! The demo resources: a page, notes behind a template, and one that changes.

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::server::DemoServer;
use super::uptime;

const README_URI: &str = "demo://readme";
const README: &str = "# The demo server\n\n\
    Tools to try a client on: `echo` and `add` answer at once, `slow` reports progress and can be\n\
    cancelled, `fail` says no, `weather_report` returns structured output, `ask_name` asks back,\n\
    `log_lines` talks while it works and `delete_note` destroys something that does not matter.\n";
const NOTE_PREFIX: &str = "demo://notes/";
const NOTE_TEMPLATE: &str = "demo://notes/{name}";

pub(super) fn readme() -> Resource {
    Resource::new(README_URI, "readme")
        .with_title("About this server")
        .with_description("What the demo tools show")
        .with_mime_type("text/markdown")
        .with_size(README.len() as u64)
}

pub(super) fn note_template() -> ResourceTemplate {
    ResourceTemplate::new(NOTE_TEMPLATE, "note")
        .with_title("A note")
        .with_description("One note of the store that delete_note works on")
        .with_mime_type("text/plain")
}

pub(super) fn read(server: &DemoServer, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let note = || uri.strip_prefix(NOTE_PREFIX).and_then(|name| server.notes.read(name));
    let (text, mime) = if uri == README_URI {
        (README.to_owned(), "text/markdown")
    } else if uri == uptime::URI {
        (uptime::text(server.started), "text/plain")
    } else if let Some(note) = note() {
        (note.to_owned(), "text/plain")
    } else {
        let data = serde_json::json!({ "uri": uri });
        return Err(ErrorData::resource_not_found(format!("no resource {uri}"), Some(data)));
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime)]))
}

/// Possible values of an argument of the template; `None` when there is no such argument.
pub(super) fn values(
    server: &DemoServer,
    template: &str,
    argument: &str,
) -> Option<Vec<&'static str>> {
    (template == NOTE_TEMPLATE && argument == "name").then(|| server.notes.names())
}
