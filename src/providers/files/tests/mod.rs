//! Tests of file tools in real directories.

mod changing;
mod entries;
mod hostile;
mod looking;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::kind;
use crate::config::environment::FixedEnvironment;
use crate::model::{Error, ToolResult};
use crate::providers::harness::KindHarness;

/// A component `d` with every tool, in the directory `d` beside the file.
const ALL: &str = "components: [{ name: d, type: files, root_dir: d, access: write }]";

/// A component with every tool, over what `prepare` puts into its directory.
fn harness(prepare: impl FnOnce(&Path)) -> KindHarness {
    with(ALL, prepare)
}

/// The entries of `yaml`, over what `prepare` puts into the directory `d` beside the file.
fn with(yaml: &str, prepare: impl FnOnce(&Path)) -> KindHarness {
    KindHarness::prepared(&kind(), yaml, |dir, _: &mut FixedEnvironment| {
        let inside = dir.join("d");
        std::fs::create_dir(&inside).unwrap();
        prepare(&inside);
    })
}

fn inside(harness: &KindHarness) -> PathBuf {
    harness.dir.path().join("d")
}

/// What a call gave, for people: its text, or its exit code and message.
fn result_text(result: Result<ToolResult, Error>) -> String {
    match result {
        Ok(result) if result.success => {
            let texts = result.content.iter().map(|block| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => block.to_string(),
            });
            let warnings = result.warnings.iter().map(|warning| format!("(warning: {warning})"));
            texts.chain(warnings).collect::<Vec<_>>().join("\n")
        }
        Ok(result) => error_text(&result.error.unwrap()),
        Err(error) => error_text(&error),
    }
}

fn error_text(error: &Error) -> String {
    format!("{}: {}", error.kind().exit_code(), error.message())
}

/// Calls a tool of the component `d`.
async fn call(harness: &KindHarness, tool: &str, arguments: Value) -> String {
    result_text(harness.call(&format!("d-{tool}"), arguments).await)
}
