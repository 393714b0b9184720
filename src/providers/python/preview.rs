//! What a call would do, without doing it.

use serde_json::{Value, json};

use super::entry::PythonEntry;
use super::module_file;
use super::runner::PythonRunner;
use crate::model::{Error, ToolCall};
use crate::provider::Preview;

pub(super) fn of_call(
    runner: &PythonRunner,
    entry: &PythonEntry,
    function: &str,
    call: &ToolCall,
) -> Result<Preview, Error> {
    let key = runner.key(entry)?;
    let file = module_file::file_of(&entry.root, &entry.module);
    Ok(Preview {
        summary: format!("calls {}.{function} in {}", entry.module, key.interpreter.display()),
        request: json!({
            "interpreter": key.interpreter.display().to_string(),
            "root": entry.root.display().to_string(),
            "env": key.env.keys().collect::<Vec<_>>(),
            "module": entry.module,
            "file": file.map(|file| file.display().to_string()),
            "function": function,
            "arguments": Value::Object(call.arguments.clone()),
        }),
    })
}
