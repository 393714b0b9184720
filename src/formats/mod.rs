//! The dialects in which models are told about tools and ask for calls.
//!
//! Owns: how a definition is written for each provider of models, what has to be left out for it,
//! reading the calls in a model's response, and writing results as the messages to send back. Never
//! does: call a tool, or contact a provider.

mod anthropic;
mod cost;
mod gemini;
mod names;
mod openai_chat;
mod openai_responses;
mod schema_subset;
mod schema_top;
#[cfg(test)]
mod tests;
mod token_estimate;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::model::{JsonObject, ToolDefinition, impl_as_str};
pub use cost::{DefinitionCost, ToolCost, tool_costs};
use names::NameRule;
use schema_subset::{AdaptedSchema, SchemaSubset};

/// A dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ModelFormat {
    /// The Chat Completions API of `OpenAI`, which many other providers speak too.
    Openai,
    /// The Responses API of `OpenAI`.
    OpenaiResponses,
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Gemini API of Google.
    Gemini,
    /// The shape of `tools/list` in the Model Context Protocol.
    Mcp,
}

/// A catalogue, written for a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExportedCatalogue {
    /// The tools, in the order of the catalogue.
    pub tools: Vec<ExportedTool>,
}

/// One tool, written for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedTool {
    /// The tool's own full name.
    pub full_name: String,
    /// The name that the model uses.
    pub name: String,
    /// The definition in the dialect.
    pub definition: Value,
    /// What the dialect cannot say of it, in words.
    pub downgrades: Vec<String>,
    /// The tool's own names of properties, by the names that the model uses instead.
    own_property_names: HashMap<String, String>,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedCall {
    /// The name of the call in the dialect, to answer it by; Gemini may leave it out.
    pub id: Option<String>,
    /// The tool's name as the model uses it.
    pub name: String,
    /// The arguments, or the text that does not parse as an object.
    pub arguments: Result<JsonObject, UnparsedArguments>,
}

/// The key under which arguments that do not parse stay as the model wrote them.
pub const RAW_ARGUMENTS: &str = "_raw_args";

impl RequestedCall {
    /// The arguments; text that does not parse stays under [`RAW_ARGUMENTS`].
    pub fn arguments_or_raw(&self) -> JsonObject {
        match &self.arguments {
            Ok(arguments) => arguments.clone(),
            Err(unparsed) => {
                [(RAW_ARGUMENTS.to_owned(), unparsed.text.clone().into())].into_iter().collect()
            }
        }
    }
}

/// Arguments that a model wrote and that are no JSON object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments are not a JSON object: {reason}")]
pub struct UnparsedArguments {
    /// The text as the model wrote it (`_raw_args`).
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// What is answered to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswer {
    /// Content blocks in MCP's shape.
    pub content: Vec<Value>,
    /// The structured result, when there is one.
    pub structured: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
}

/// Why a model's response cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// It has the shape of no response of this dialect.
    #[error("this is not a response in the format {format}: {missing} is missing")]
    Shape {
        /// The dialect it was read as.
        format: &'static str,
        /// What a response of the dialect has.
        missing: &'static str,
    },
    /// A call in it cannot be read.
    #[error("call {number} of the response has no {missing}")]
    Call {
        /// The place of the call, from 1.
        number: usize,
        /// What it lacks.
        missing: &'static str,
    },
    /// It asks for calls in a dialect that knows none.
    #[error("the format {0} has no model responses")]
    NoResponses(&'static str),
}

impl_as_str!(ModelFormat);

impl ModelFormat {
    /// Every dialect, in the order of the help.
    pub const ALL: [Self; 5] =
        [Self::Openai, Self::OpenaiResponses, Self::Anthropic, Self::Gemini, Self::Mcp];

    /// The dialect that a model of this name is spoken to in; `None` for names of no known family.
    pub fn of_model(model: &str) -> Option<Self> {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let starts = |prefixes: &[&str]| prefixes.iter().any(|word| name.starts_with(word));
        if starts(&["claude"]) {
            Some(Self::Anthropic)
        } else if starts(&["gemini", "gemma"]) {
            Some(Self::Gemini)
        } else if starts(&["gpt", "o1", "o3", "o4", "chatgpt", "codex"]) {
            Some(Self::Openai)
        } else {
            None
        }
    }

    /// Writes definitions in this dialect. The same tools give the same names each time, and no two
    /// tools get one name.
    pub fn export<'t>(
        self,
        tools: impl IntoIterator<Item = &'t ToolDefinition>,
    ) -> ExportedCatalogue {
        let tools: Vec<_> = tools.into_iter().map(|tool| (tool.name.full(), tool)).collect();
        let rule = self.name_rule();
        let is_allowed = |name: &str| rule.is_none_or(|rule| rule.allows(name));
        // A name that can stay does, whatever the others are turned into.
        let own = tools.iter().map(|(name, _)| name).filter(|name| is_allowed(name));
        let mut taken: HashSet<String> = own.cloned().collect();
        let mut exported = ExportedCatalogue::default();
        for (full_name, tool) in tools {
            let name = match rule {
                Some(rule) if !rule.allows(&full_name) => {
                    rule.apply_unique(&full_name, |name| !taken.contains(name))
                }
                _ => full_name.clone(),
            };
            taken.insert(name.clone());
            exported.tools.push(self.exported_tool(full_name, name, tool));
        }
        exported
    }

    fn exported_tool(self, full_name: String, name: String, tool: &ToolDefinition) -> ExportedTool {
        let mut downgrades = Vec::new();
        if name != full_name {
            downgrades.push(format!("named '{name}' there"));
        }
        let description = tool.description.as_deref().or(tool.title.as_deref());
        if let Some((most, speakers)) = self.description_limit()
            && let Some(length) = description.map(|text| text.chars().count())
            && length > most
        {
            downgrades.push(format!(
                "its description has {length} characters; {speakers} refuse more than {most}"
            ));
        }
        if self == Self::Mcp {
            let definition = mcp_definition(tool);
            let own_property_names = HashMap::new();
            return ExportedTool { full_name, name, definition, downgrades, own_property_names };
        }
        let adapted = self.schema_subset().apply(&tool.input_schema);
        let AdaptedSchema { schema, own_names, downgrades: of_schema } = adapted;
        downgrades.extend(of_schema);
        let definition = self.definition(&name, description, schema);
        ExportedTool { full_name, name, definition, downgrades, own_property_names: own_names }
    }

    /// The calls that a model's response asks for, in its order.
    ///
    /// # Errors
    /// When it is no response of this dialect. Arguments that do not parse are no error of the
    /// response: the call is answered with one.
    pub fn requested_calls(self, response: &Value) -> Result<Vec<RequestedCall>, ResponseError> {
        // The calls in it; what stands in a response of the dialect, and where in each call.
        let (calls, missing, fields) = match self {
            Self::Openai => (
                openai_chat::calls(response),
                "choices[0].message",
                ["id", "function.name", "function.arguments"],
            ),
            Self::OpenaiResponses => {
                (openai_responses::calls(response), "output", ["call_id", "name", "arguments"])
            }
            Self::Anthropic => (anthropic::calls(response), "content", ["id", "name", "input"]),
            Self::Gemini => {
                (gemini::calls(response), "candidates[0].content.parts", ["id", "name", "args"])
            }
            Self::Mcp => return Err(ResponseError::NoResponses(self.as_str())),
        };
        let calls = calls.ok_or(ResponseError::Shape { format: self.as_str(), missing })?;
        let calls = calls.into_iter().enumerate();
        calls.map(|(index, call)| self.requested_call(index + 1, call, fields)).collect()
    }

    fn requested_call(
        self,
        number: usize,
        call: &Value,
        [id, name, arguments]: [&'static str; 3],
    ) -> Result<RequestedCall, ResponseError> {
        let field = |path: &str| path.split('.').try_fold(call, |inner, key| inner.get(key));
        let text = |missing: &'static str| {
            let text = field(missing).and_then(Value::as_str).map(str::to_owned);
            text.ok_or(ResponseError::Call { number, missing })
        };
        Ok(RequestedCall {
            id: if self == Self::Gemini { text(id).ok() } else { Some(text(id)?) },
            name: text(name)?,
            arguments: match field(arguments) {
                Some(Value::String(text)) => parse_arguments(text),
                None | Some(Value::Null) => Ok(Map::new()),
                Some(other) => parse_arguments(&other.to_string()),
            },
        })
    }

    /// The messages that answer calls, in the order of the calls.
    pub fn answer_messages(self, answers: &[(RequestedCall, CallAnswer)]) -> Vec<Value> {
        let each = |to_value: fn(&RequestedCall, &CallAnswer) -> Value| -> Vec<Value> {
            answers.iter().map(|(call, answer)| to_value(call, answer)).collect()
        };
        match self {
            Self::Mcp => Vec::new(),
            _ if answers.is_empty() => Vec::new(),
            Self::Openai => each(openai_chat::answer),
            Self::OpenaiResponses => each(openai_responses::answer),
            Self::Anthropic => {
                vec![json!({ "role": "user", "content": each(anthropic::answer) })]
            }
            Self::Gemini => vec![json!({ "role": "user", "parts": each(gemini::answer) })],
        }
    }

    /// The most tools that one request may carry, where the provider says so.
    pub fn most_tools(self) -> Option<usize> {
        matches!(self, Self::Openai | Self::OpenaiResponses).then_some(128)
    }

    /// The most characters that a description may have for some speakers of the dialect, and who.
    fn description_limit(self) -> Option<(usize, &'static str)> {
        match self {
            Self::Openai | Self::OpenaiResponses => Some((1024, "some models and providers")),
            Self::Anthropic | Self::Gemini | Self::Mcp => None,
        }
    }

    fn name_rule(self) -> Option<NameRule> {
        let (longest, extra) = match self {
            Self::Openai | Self::OpenaiResponses => (64, "_-"),
            Self::Anthropic => (128, "_-"),
            Self::Gemini => (64, "_-.:"),
            // Its rules are recommendations, and a server is asked for its own names.
            Self::Mcp => return None,
        };
        Some(NameRule { longest, extra, begins_with_letter: true })
    }

    fn schema_subset(self) -> SchemaSubset {
        let property_names = (self == Self::Anthropic).then_some(NameRule {
            longest: 64,
            extra: "_.-",
            begins_with_letter: false,
        });
        let keywords = (self == Self::Gemini).then_some(gemini::KEYWORDS);
        SchemaSubset { keywords, property_names }
    }

    fn definition(self, name: &str, description: Option<&str>, schema: Value) -> Value {
        let (schema_key, description) = match self {
            Self::Openai | Self::OpenaiResponses | Self::Mcp => ("parameters", description),
            Self::Anthropic => ("input_schema", description),
            // The API requires a description.
            Self::Gemini => ("parametersJsonSchema", description.or(Some(name))),
        };
        let mut tool = match self {
            Self::OpenaiResponses => json!({ "type": "function", "name": name }),
            _ => json!({ "name": name }),
        };
        if let Some(description) = description {
            tool["description"] = json!(description);
        }
        tool[schema_key] = schema;
        match self {
            Self::Openai => return json!({ "type": "function", "function": tool }),
            // The default, true, takes a small subset of schemas only.
            Self::OpenaiResponses => tool["strict"] = json!(false),
            _ => {}
        }
        tool
    }
}

impl ExportedCatalogue {
    /// The tool that a model knows by this name.
    pub fn tool(&self, name: &str) -> Option<&ExportedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The definitions as one JSON array.
    pub fn definitions(&self) -> Value {
        Value::Array(self.tools.iter().map(|tool| tool.definition.clone()).collect())
    }
}

impl ExportedTool {
    /// The arguments of a model's call under the tool's own names of properties.
    pub fn own_arguments(&self, arguments: JsonObject) -> JsonObject {
        if self.own_property_names.is_empty() {
            return arguments;
        }
        let renamed = arguments.into_iter().map(|(name, value)| {
            let own = self.own_property_names.get(&name).cloned();
            (own.unwrap_or(name), self.own_value(value))
        });
        renamed.collect()
    }

    fn own_value(&self, value: Value) -> Value {
        match value {
            Value::Object(inner) => Value::Object(self.own_arguments(inner)),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.own_value(item)).collect())
            }
            other => other,
        }
    }
}

impl RequestedCall {
    /// Whether a name in it may stand for one that its dialect does not allow.
    pub fn has_changed_names(&self) -> bool {
        fn in_keys(value: &Value) -> bool {
            match value {
                Value::Object(inner) => {
                    inner.iter().any(|(name, value)| names::has_digest(name) || in_keys(value))
                }
                Value::Array(items) => items.iter().any(in_keys),
                _ => false,
            }
        }
        let arguments = self.arguments.as_ref().ok().into_iter().flatten();
        names::has_digest(&self.name)
            || arguments.into_iter().any(|(name, value)| names::has_digest(name) || in_keys(value))
    }
}

impl CallAnswer {
    /// A failure in words.
    pub fn failure(text: impl Into<String>) -> Self {
        let block = json!({ "type": "text", "text": text.into() });
        Self { content: vec![block], structured: None, is_error: true }
    }

    /// The content as one text. What is no text is named with its type and size.
    pub fn text(&self) -> String {
        let parts: Vec<String> = self.content.iter().map(block_text).collect();
        match (&self.structured, parts.is_empty()) {
            (Some(structured), true) => structured.to_string(),
            _ => parts.join("\n"),
        }
    }
}

/// The types of pictures that models are shown.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

fn is_type(value: &Value, name: &str) -> bool {
    value["type"] == name
}

/// Whether a content block is a picture that a model can be shown.
fn is_shown_image(block: &Value) -> bool {
    is_type(block, "image") && block["mimeType"].as_str().is_some_and(|kind| IMAGES.contains(&kind))
}

fn block_text(block: &Value) -> String {
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    match field("type") {
        Some("text") => field("text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            let media = field("mimeType").unwrap_or("unknown type");
            // Base64 takes four characters for three bytes.
            let bytes = field("data").map_or(0, |data| data.len() / 4 * 3);
            format!("[{kind} of {media}, about {bytes} bytes, not shown to the model]")
        }
        _ => block.to_string(),
    }
}

fn parse_arguments(text: &str) -> Result<JsonObject, UnparsedArguments> {
    // Some models write nothing for a tool without arguments.
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let fail = |reason: String| UnparsedArguments { text: text.to_owned(), reason };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(fail("it is another JSON type".to_owned())),
        Err(error) => Err(fail(error.to_string())),
    }
}

fn mcp_definition(tool: &ToolDefinition) -> Value {
    let mut definition = match tool.raw_value() {
        Some(Value::Object(raw)) => raw,
        _ => Map::new(),
    };
    definition.insert("name".into(), Value::from(tool.name.full()));
    if let Some(title) = &tool.title {
        definition.insert("title".into(), Value::from(title.clone()));
    }
    if let Some(description) = &tool.description {
        definition.insert("description".into(), Value::from(description.clone()));
    }
    let mut schema = tool.input_schema.as_object().cloned().unwrap_or_default();
    // Every revision requires it at the top.
    schema.entry("type").or_insert_with(|| Value::from("object"));
    definition.insert("inputSchema".into(), Value::Object(schema));
    if let Some(schema) = &tool.output_schema {
        definition.insert("outputSchema".into(), (**schema).clone());
    }
    Value::Object(definition)
}
