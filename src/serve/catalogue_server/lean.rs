//! `serve --lean`: three tools that find, describe and call the others, in place of all definitions.

use std::cmp::Reverse;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::tool_list::ServedTool;
use crate::catalogue::query::CatalogueQuery;
use crate::model::{JsonObject, Origin, ToolDefinition, ToolName, ToolSource};
use crate::util::pattern;

const FIND: &str = "find_tools";
const DESCRIBE: &str = "describe_tool";
const CALL: &str = "call_tool";
/// Each word of a query is looked for in every tool.
const MAX_WORDS: usize = 32;
const MAX_RESULTS: usize = 20;
const MAX_DESCRIPTION: usize = 200;

/// Whether a definition is served all the same.
pub(super) fn is_whole(tool: &ServedTool, patterns: &[String]) -> bool {
    ![FIND, DESCRIBE, CALL].contains(&&*tool.wire.name)
        && patterns.iter().any(|whole| pattern::matches(whole, &tool.full_name))
}

/// The definitions of the three.
pub fn definitions() -> Vec<ToolDefinition> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let define = |name: &str, description: &str, properties: Value, required: &[&str]| {
        let origin = Origin::Server(String::new());
        let name = ToolName::plain(name);
        let mut tool = ToolDefinition::new(name, ToolSource::Internal, "builtin", origin);
        tool.description = Some(description.to_owned());
        tool.input_schema =
            json!({ "type": "object", "properties": properties, "required": required }).into();
        tool
    };
    let name = || text("Name of the tool, as find_tools returns it");
    let arguments = json!({ "type": "object", "description": "Arguments of the tool" });
    vec![
        define(
            FIND,
            "Find tools by words in their names and descriptions. Many more tools exist than are \
             listed: search here before you decide that something is impossible.",
            json!({ "query": text("Words; none lists the first tools") }),
            &[],
        ),
        define(
            DESCRIBE,
            "The full definition of a tool: its description and the JSON Schema of its arguments.",
            json!({ "name": name() }),
            &["name"],
        ),
        define(
            CALL,
            "Call a tool that find_tools returned. See describe_tool for its arguments.",
            json!({ "name": name(), "arguments": arguments }),
            &["name"],
        ),
    ]
}

/// What a client calls.
pub(super) enum LeanCall {
    Find(String),
    Describe(String),
    /// A tool, which is called as if it had been named directly.
    Tool(String, Option<JsonObject>),
    Invalid(&'static str),
}

impl LeanCall {
    pub(super) fn read(name: String, mut arguments: Option<JsonObject>) -> Self {
        let mut argument = |key| arguments.as_mut().and_then(|all| all.remove(key));
        match name.as_str() {
            FIND => match argument("query") {
                Some(Value::String(query)) => Self::Find(query),
                None | Some(Value::Null) => Self::Find(String::new()),
                Some(_) => Self::Invalid("'query' must be text"),
            },
            DESCRIBE | CALL => match (argument("name"), argument("arguments")) {
                (Some(Value::String(tool)), _) if name == DESCRIBE => Self::Describe(tool),
                (Some(Value::String(tool)), None | Some(Value::Null)) => Self::Tool(tool, None),
                (Some(Value::String(tool)), Some(Value::Object(all))) => {
                    Self::Tool(tool, Some(all))
                }
                (Some(Value::String(_)), _) => Self::Invalid("'arguments' must be an object"),
                _ => Self::Invalid("'name' must be the name of a tool"),
            },
            _ => Self::Tool(name, arguments),
        }
    }

    /// The answer, unless it is the call of a tool; `tools` are those that the client may call.
    pub(super) fn answer(&self, tools: &[&ServedTool]) -> CallToolResult {
        let result = match self {
            Self::Find(query) => Ok(matches(query, tools)),
            Self::Describe(name) => {
                let tool = tools.iter().find(|tool| tool.wire.name == *name);
                tool.map(|tool| json!(tool.wire)).ok_or("there is no such tool; see find_tools")
            }
            Self::Invalid(reason) => Err(*reason),
            Self::Tool(..) => Err("not found"),
        };
        match result {
            Ok(value) => CallToolResult::success(vec![ContentBlock::text(value.to_string())]),
            Err(reason) => CallToolResult::error(vec![ContentBlock::text(reason)]),
        }
    }
}

/// The tools that hold all words, best first; where none does, those that hold most of them.
fn matches(query: &str, tools: &[&ServedTool]) -> Value {
    let definitions: Vec<&ToolDefinition> = tools.iter().map(|tool| &*tool.definition).collect();
    let select = |words: Vec<String>| {
        CatalogueQuery { words, ..CatalogueQuery::default() }.select(&definitions)
    };
    let words: Vec<String> = query.split_whitespace().take(MAX_WORDS).map(str::to_owned).collect();
    let mut places = select(words.clone());
    if places.is_empty() {
        let mut counts = vec![0_usize; tools.len()];
        for place in words.into_iter().flat_map(|word| select(vec![word])) {
            counts[place] += 1;
        }
        places = (0..tools.len()).filter(|place| counts[*place] > 0).collect();
        places.sort_by_key(|place| Reverse(counts[*place]));
    }
    let shown = places.iter().take(MAX_RESULTS).filter_map(|place| tools.get(*place));
    let shown = shown.map(|tool| {
        let description = tool.wire.description.as_deref().unwrap_or_default();
        let short: String = description.chars().take(MAX_DESCRIPTION).collect();
        let rest = if short.len() < description.len() { "…" } else { "" };
        json!({ "name": tool.wire.name, "description": format!("{short}{rest}") })
    });
    json!({ "tools": shown.collect::<Vec<_>>(), "matches": places.len() })
}
