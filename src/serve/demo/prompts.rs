//! The demo prompt: a greeting, in a language that completes.

use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

const NAME: &str = "greet";
const LANGUAGES: [&str; 6] = ["English", "Finnish", "French", "German", "Spanish", "Swahili"];

pub(super) fn greet() -> Prompt {
    Prompt::new(
        NAME,
        Some("Asks a model for a short greeting"),
        Some(vec![
            PromptArgument::new("name").with_description("Who to greet").with_required(true),
            PromptArgument::new("language")
                .with_description("The language of the greeting; English when left out")
                .with_required(false),
        ]),
    )
    .with_title("Greet someone")
}

pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    if request.name != NAME {
        return Err(ErrorData::invalid_params(format!("unknown prompt: {}", request.name), None));
    }
    let argument = |key| request.arguments.as_ref()?.get(key)?.as_str();
    let Some(name) = argument("name") else {
        return Err(ErrorData::invalid_params("greet needs the argument 'name'", None));
    };
    let language = argument("language").unwrap_or("English");
    let text = format!("Greet {name} in {language}, in one short sentence.");
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

/// Possible values of an argument; `None` when there is no such argument.
pub(super) fn values(prompt: &str, argument: &str) -> Option<Vec<&'static str>> {
    (prompt == NAME && argument == "language").then(|| LANGUAGES.to_vec())
}
