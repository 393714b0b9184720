//! `toolhost complete`: completions of prompt and template arguments.

use std::collections::BTreeMap;

use super::offerings;
use super::prelude::*;
use crate::host::request::ItemRequest;
use crate::model::{Completion, CompletionQuery, CompletionReference};

/// Show completions for an argument of a prompt or resource template.
///
/// Prints the values suggested by the server, one per line.
#[derive(Debug, Args)]
#[command(after_help = "JSON: {\"values\": [...], \"total\", \"has_more\"}")]
#[command(arg = formats::option(formats::WORDS), arg = ad_hoc::command())]
pub struct CompleteArgs {
    /// A prompt, or a URI template as shown by `resources list --templates`
    #[arg(value_name = "REF", add = ArgValueCompleter::new(complete::prompts))]
    pub reference: String,
    /// Name of the argument
    pub argument: String,
    /// The part of the value typed so far
    #[arg(default_value = "", hide_default_value = true)]
    pub value: String,
    /// Another argument that is already known (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub context: Vec<(String, String)>,
    /// Only ask this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
}

fn parse_pair(text: &str) -> Result<(String, String), Error> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Error::usage("expected KEY=VALUE")),
    }
}

pub async fn run(args: &CompleteArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::WORDS)?;
    // A prompt name may contain a colon, but does not look like a URI.
    let is_address = args.reference.contains("://") || args.reference.contains('{');
    let query = CompletionQuery {
        reference: if is_address {
            CompletionReference::Template(args.reference.clone())
        } else {
            CompletionReference::Prompt(args.reference.clone())
        },
        argument: args.argument.clone(),
        value: args.value.clone(),
        context: args.context.iter().cloned().collect::<BTreeMap<_, _>>(),
    };
    let assembly = offerings::assemble(context, "toolhost complete", &args.server).await?;
    let done = assembly
        .host
        .complete(query, &ItemRequest::to_servers(&args.server, &context.cancel))
        .await?;
    if matches!(format, Format::Json | Format::Yaml) {
        return context.output.value(format, &done);
    }
    context.output.names(&done.values)?;
    if let Some(text) = remark(&done) {
        context.output.note(hint(text));
    }
    Ok(())
}

fn remark(done: &Completion) -> Option<String> {
    let shown = done.values.len();
    match (done.total, done.has_more) {
        _ if shown == 0 => Some("no values match".to_owned()),
        (Some(total), _) if total > shown as u64 => Some(format!("{shown} of {total} values")),
        (_, Some(true)) => Some(format!("{}, and more", plural(shown, "value", "values"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_told() {
        let done = |count: usize, total, has_more| {
            let values = vec!["x".to_owned(); count];
            remark(&Completion { values, total, has_more })
        };
        assert_eq!(done(0, None, None).as_deref(), Some("no values match"));
        assert_eq!(done(2, Some(2), Some(false)), None);
        assert_eq!(done(2, Some(9), None).as_deref(), Some("2 of 9 values"));
        assert_eq!(done(1, None, Some(true)).as_deref(), Some("1 value, and more"));
    }
}
