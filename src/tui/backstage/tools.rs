//! Dry runs, and results in files.

use std::path::Path;

use super::files;
use crate::host::ToolHost;
use crate::host::content::{self, Payload};
use crate::host::request::{Arguments, CallRequest};
use crate::model::{Fault, ToolResult};
use crate::tui::event::Event;
use crate::tui::event::tools::{News, Saved, Wish};
use crate::util::{json, targets};

pub(super) async fn perform(wish: Wish, host: &ToolHost, cwd: &Path) -> Event {
    match wish {
        Wish::Rehearse { tool, arguments } => {
            let request = CallRequest::new(tool.clone(), Arguments::Object(arguments));
            let rehearsal = host.preview(&request).await;
            Event::Tools(Box::new(News::Rehearsed { tool, rehearsal }))
        }
        Wish::Save { stem, what } => match payloads(*what) {
            Ok(payloads) if payloads.is_empty() => {
                Event::Said { text: "the result has nothing to save".to_owned(), is_bad: true }
            }
            Ok(payloads) => save(&stem, payloads, cwd).await,
            Err(fault) => Event::Said { text: fault.message().to_owned(), is_bad: true },
        },
    }
}

fn payloads(what: Saved) -> Result<Vec<Payload>, Fault> {
    match what {
        Saved::Json(value) => Ok(vec![Payload {
            bytes: (json::pretty(&value) + "\n").into_bytes(),
            media_type: "application/json".to_owned(),
        }]),
        Saved::Blocks { content, structured, output } => {
            let result = ToolResult { output, content, structured, ..ToolResult::default() };
            content::payloads(&result).map_err(|block| {
                Fault::protocol(format!("the binary data of block {block} cannot be decoded"))
            })
        }
    }
}

/// A file for each payload. Nothing of what a server said gets into a name.
async fn save(stem: &str, payloads: Vec<Payload>, cwd: &Path) -> Event {
    let many = payloads.len() > 1;
    let mut last = None;
    let mut names = Vec::new();
    for (at, payload) in payloads.into_iter().enumerate() {
        let number = if many { format!("-{}", at + 1) } else { String::new() };
        let essence = payload.media_type.split(';').next().unwrap_or_default().trim();
        let end = match essence {
            "application/json" => "json",
            other => targets::extension(other).unwrap_or("txt"),
        };
        let name = format!("{stem}{number}.{end}");
        match files::write(cwd.join(&name), &payload.bytes).await {
            Event::Said { is_bad: false, .. } => names.push(name),
            failed => last = Some(failed),
        }
    }
    last.unwrap_or_else(|| Event::Said {
        text: format!("written to {}", names.join(", ")),
        is_bad: false,
    })
}
