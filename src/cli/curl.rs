//! curl command lines: printed for a call, and read into an entry of tools.yaml.

use std::collections::VecDeque;

use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use crate::assembly::Assembly;
use crate::config::references;
use crate::config::spec::{AuthSpec, Endpoint, Transport};
use crate::host::request::{ArgumentWord, CallArguments, DryRun};
use crate::model::{Era, Error, JsonObject, ToolSource};
use crate::util::json::{compact, map_json};
use crate::util::text::shell_quote;

const FORM: &str = "application/x-www-form-urlencoded";

/// How variables are shown in a request: by the masker, and by tools themselves.
const REFERENCE: (&str, char) = ("${", '}');
const MASKED: (&str, char) = ("***(", ')');

/// The curl command that sends what a call with these arguments would send. Variables of the entry
/// are left to the shell.
pub fn command(
    assembly: &Assembly,
    arguments: &CallArguments,
    dry_run: &DryRun,
) -> Result<String, Error> {
    let tool = &dry_run.definition;
    let (request, mark) = match tool.source {
        ToolSource::Mcp => (mcp_request(assembly, dry_run)?, REFERENCE),
        ToolSource::Internal => (dry_run.preview.request.clone(), MASKED),
    };
    let (Some(method), Some(url)) = (request["method"].as_str(), request["url"].as_str()) else {
        return Err(Error::usage(format!("'{}' sends no HTTP request", tool.name.full()))
            .with_hint("--dry-run shows what it does"));
    };
    let text = |value: &Value| value.as_str().map_or_else(|| compact(value), str::to_owned);
    let body = Some(&request["body"]).filter(|body| !body.is_null()).map(text);
    if body.as_ref().is_some_and(|body| body.contains('\u{fffd}')) {
        return Err(Error::usage("the body is not text, which no command line can hold"));
    }
    let mut words = vec!["curl".to_owned()];
    if url.contains(['[', ']', '{', '}']) {
        words.push("--globoff".to_owned());
    }
    let usual = if body.is_some() { "POST" } else { "GET" };
    if method != usual {
        words.extend(["-X".to_owned(), shell_quote(method)]);
    }
    let is_of_entry = !may_contain_reference(arguments);
    let word =
        |text: &str| if is_of_entry { with_variables(text, mark) } else { shell_quote(text) };
    words.push(word(url));
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        words.extend(["-H".to_owned(), word(&format!("{name}: {}", text(value)))]);
    }
    if let Some(body) = body {
        words.extend(["--data-raw".to_owned(), word(&body)]);
    }
    Ok(words.join(" "))
}

/// What looks like a variable in an argument is only text, which no shell may expand.
fn may_contain_reference(arguments: &CallArguments) -> bool {
    let is_like_one = |text: &str| text.contains(REFERENCE.0) || text.contains(MASKED.0);
    match arguments {
        CallArguments::Object(object) => is_like_one(&compact(object)),
        CallArguments::Words(words) => words.iter().any(|word| match word {
            ArgumentWord::Text { value, .. } => is_like_one(value),
            ArgumentWord::Json { value, .. } => is_like_one(&compact(value)),
            ArgumentWord::File { .. } => true,
        }),
    }
}

/// The text for a shell, which puts in the variables that are marked like this.
fn with_variables(text: &str, (open, close): (&str, char)) -> String {
    let quoted = |text: &str| if text.is_empty() { String::new() } else { shell_quote(text) };
    let mut parts = text.split(open);
    let mut word = parts.next().map(quoted).unwrap_or_default();
    for part in parts {
        match part.split_once(close) {
            Some((name, rest)) if references::is_name(name) => {
                for piece in ["\"${", name, "}\"", &quoted(rest)] {
                    word.push_str(piece);
                }
            }
            _ => word.push_str(&shell_quote(&[open, part].concat())),
        }
    }
    word
}

/// The request of a call to a server over HTTP, with secrets masked.
fn mcp_request(assembly: &Assembly, dry_run: &DryRun) -> Result<Value, Error> {
    let server = dry_run.definition.name.component().unwrap_or_default();
    let spec = assembly.configuration.servers.iter().find(|spec| spec.name == server);
    let Some(Endpoint::Http {
        url,
        socket: None,
        transport: Transport::Auto | Transport::Http,
        headers,
        auth,
        ..
    }) = spec.map(|spec| &spec.endpoint)
    else {
        return Err(Error::usage(format!("the server '{server}' is not reached over HTTP"))
            .with_hint("--dry-run shows the message"));
    };
    let status = assembly.host.servers().into_iter().find(|status| status.name == server);
    let (era, version) = status.map(|status| (status.era, status.protocol)).unwrap_or_default();
    let version = version.unwrap_or_else(|| "2025-11-25".to_owned());
    let mut body = dry_run.preview.request.clone();
    let mut all = JsonObject::new();
    let mut add = |name: &str, value: &str| {
        all.insert(name.to_owned(), assembly.masker.text(value).into());
    };
    add("content-type", "application/json");
    add("accept", "application/json, text/event-stream");
    add("mcp-protocol-version", &version);
    if era == Some(Era::Modern) {
        add("mcp-method", "tools/call");
        add("mcp-name", dry_run.definition.name.tool());
        body["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": { "name": "curl", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    match &**auth {
        AuthSpec::Unset | AuthSpec::None => {}
        AuthSpec::Bearer { variable: Some(name), .. } => {
            add("authorization", &format!("Bearer ${{{name}}}"));
        }
        _ => add("authorization", "Bearer ${TOKEN}"),
    }
    for (name, value) in headers {
        add(name, value.expose_secret());
    }
    let url = assembly.masker.text(url.as_str());
    Ok(json!({ "method": "POST", "url": url, "headers": all, "body": body }))
}

/// Reads a curl command, without its first word, into an entry of tools.yaml.
pub fn entry(name: &str, words: &[String]) -> Result<Value, Error> {
    let mut words: VecDeque<&str> = words.iter().map(String::as_str).collect();
    let (mut url, mut method, mut user) = (None, None, None);
    let (mut headers, mut data, mut is_json, mut in_query) = (Map::new(), Vec::new(), false, false);
    while let Some(word) = words.pop_front() {
        let is_short = word.starts_with('-') && !word.starts_with("--") && word.len() > 2;
        let (option, attached) = match word.get(..2) {
            Some(option) if is_short => (option, word.get(2..)),
            _ => (word, None),
        };
        let mut value = || {
            let next = attached.or_else(|| words.pop_front());
            next.ok_or_else(|| Error::usage(format!("curl: {option} has no value")))
        };
        match option {
            "-X" | "--request" => method = Some(value()?),
            "-u" | "--user" => user = Some(value()?),
            "--url" => url = Some(value()?),
            "-H" | "--header" => {
                let header = value()?;
                let Some((name, text)) = header.split_once(':') else {
                    return Err(Error::usage("curl: expected -H 'Name: value'"));
                };
                if headers.insert(name.trim().to_owned(), text.trim().into()).is_some() {
                    return Err(Error::usage(format!("curl: the header {name} is given twice")));
                }
            }
            "-d" | "--data" | "--data-ascii" | "--data-raw" | "--json" => {
                is_json |= option == "--json";
                let text = value()?;
                if text.starts_with('@') && option != "--data-raw" {
                    return Err(Error::usage(format!("curl: {option} @file is not supported"))
                        .with_hint("write the body into the command"));
                }
                data.push(text);
            }
            "-G" | "--get" if attached.is_none() => in_query = true,
            "-s" | "--silent" | "-S" | "--show-error" | "--compressed" if attached.is_none() => {}
            _ if option.starts_with('-') => {
                return Err(Error::usage(format!("curl: the option {word} is not supported")));
            }
            _ if url.is_some() => return Err(Error::usage("curl: there is more than one URL")),
            _ => url = Some(word),
        }
    }
    let mut url = url.ok_or_else(|| Error::usage("curl: there is no URL"))?.to_owned();
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(Error::usage("curl: the URL begins with http:// or https://"));
    }
    let data = (!data.is_empty()).then(|| data.join(if is_json { "" } else { "&" }));
    if let Some(data) = data.as_deref().filter(|_| in_query) {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(data);
    }
    let data = data.as_deref().filter(|_| !in_query);
    let usual = if data.is_some() { "POST" } else { "GET" };
    let mut entry = json!({
        "name": name,
        "endpoint_url": literal(&url),
        "method": method.unwrap_or(usual),
    });
    if let Some(data) = data {
        body(&mut entry, &mut headers, data, is_json)?;
    }
    if let Some(user) = user {
        let (username, password) = user.split_once(':').unwrap_or((user, ""));
        entry["auth"] = json!({ "type": "basic", "username": username, "password": password });
    }
    if !headers.is_empty() {
        entry["headers"] = headers.into();
    }
    Ok(entry)
}

fn body(
    entry: &mut Value,
    headers: &mut JsonObject,
    data: &str,
    is_json: bool,
) -> Result<(), Error> {
    let written = headers.keys().find(|name| name.eq_ignore_ascii_case("content-type")).cloned();
    let media_type = written.as_ref().and_then(|name| headers[name].as_str()).unwrap_or_default();
    let names_json = is_json || media_type.contains("json");
    let is_form = media_type.is_empty() || media_type.starts_with(FORM);
    match serde_json::from_str::<Value>(data) {
        Ok(json) if names_json || (json.is_object() && media_type.is_empty()) => {
            entry["body"] = map_json(&json, &literal);
        }
        Err(why) if names_json => return Err(Error::usage(format!("curl: invalid JSON: {why}"))),
        _ if is_form => {
            let mut fields = Map::new();
            for (name, value) in form_urlencoded::parse(data.as_bytes()) {
                if fields.insert(name.clone().into_owned(), literal(&value).into()).is_some() {
                    return Err(Error::usage(format!("curl: the field {name} is given twice")));
                }
            }
            entry["body_type"] = "form".into();
            entry["body"] = fields.into();
            if let Some(name) = written {
                headers.shift_remove(&name);
            }
        }
        _ => {
            entry["body_type"] = "text".into();
            entry["body"] = literal(data).into();
        }
    }
    Ok(())
}

/// Text that is no reference, as it was none for the shell.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}
