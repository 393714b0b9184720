//! `config`: what was loaded, from where, and what is wrong with it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::millis;
use crate::cli::context::plural;
use crate::cli::output::{Label, Line, Page, caret, fault, json as json_text};
use crate::config::environment::Environment;
use crate::config::spec::{
    AuthSpec, Configuration, Endpoint, FileRole, Layer, PolicyAction, ProtocolChoice, ServerSpec,
    ToolSpec, Trust,
};
use crate::model::Problem;

/// What stands in the place of a secret.
const MASK: &str = "***";

/// Every finding, in file order.
pub fn findings(problems: &[Problem]) -> Page {
    let mut page = Page::default();
    for problem in problems {
        page.append(fault::finding(problem));
    }
    page
}

/// Every finding, in JSON.
pub fn findings_json(problems: &[Problem]) -> Value {
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    json!({
        "problems": problems.iter().map(fault::finding_json).collect::<Vec<_>>(),
        "errors": errors,
        "warnings": problems.len() - errors,
    })
}

/// Every entry with its place, secrets masked, in JSON.
pub fn json(configuration: &Configuration) -> Value {
    json!({
        "files": files_json(configuration),
        "tools": configuration.tools.iter().map(tool_json).collect::<Vec<_>>(),
        "servers": configuration.servers.iter().map(server_json).collect::<Vec<_>>(),
        "profiles": configuration.profiles.iter().map(|(name, profile)| {
            (name.clone(), json!({
                "include": profile.include,
                "exclude": profile.exclude,
                "servers": profile.servers,
                "categories": profile.categories,
                "safety": profile.safety,
            }))
        }).collect::<serde_json::Map<_, _>>(),
        "policy": configuration.policy.iter().map(|rule| json!({
            "match": rule.pattern,
            "action": action(rule.action),
            "source": caret::location(&rule.place),
        })).collect::<Vec<_>>(),
        "scopes": configuration.scopes.iter().map(|(name, path)| {
            (name.clone(), json!(path.display().to_string()))
        }).collect::<serde_json::Map<_, _>>(),
        "stats": record_json(&configuration.stats),
        "audit": record_json(&configuration.audit),
        "disabled": configuration.disabled.iter().map(|entry| json!({
            "name": entry.name,
            "role": role(entry.role),
            "reason": fault::finding_json(&entry.problem),
        })).collect::<Vec<_>>(),
    })
}

/// Every entry with its place, secrets masked.
pub fn page(configuration: &Configuration) -> Page {
    let mut page = Page::default();
    for tool in &configuration.tools {
        entry(&mut page, "tool", &tool.definition.name.full(), &tool_json(tool));
    }
    for server in &configuration.servers {
        entry(&mut page, "server", &server.name, &server_json(server));
    }
    let whole = json(configuration);
    for key in ["profiles", "policy", "scopes", "stats", "audit"] {
        let mut value = whole[key].clone();
        drop_empty(&mut value);
        if !is_empty(&value) {
            page.heading(key);
            page.text(Label::Plain, 2, yaml(&value).trim_end());
        }
    }
    for disabled in &configuration.disabled {
        page.gap();
        page.push(Line::of(Label::Error, "out of service ").then(Label::Name, &disabled.name));
        for line in fault::finding(&disabled.problem).lines() {
            page.push(line.clone().indented(2));
        }
    }
    page
}

fn entry(page: &mut Page, what: &str, name: &str, value: &Value) {
    page.gap();
    let source = value["source"].as_str().unwrap_or_default();
    page.push(
        Line::plain(format!("{what} "))
            .then(Label::Name, name)
            .then(Label::Dim, format!("  {source}")),
    );
    let mut rest = value.clone();
    drop_empty(&mut rest);
    if let Some(fields) = rest.as_object_mut() {
        fields.retain(|key, _| !matches!(key.as_str(), "name" | "source"));
    }
    page.text(Label::Plain, 2, yaml(&rest).trim_end());
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Leaves out what says nothing to a person.
fn drop_empty(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !is_empty(value));
        fields.values_mut().for_each(drop_empty);
    }
}

/// Where files were looked for, which were read, and the directories of this user.
pub fn paths(configuration: &Configuration, environment: &dyn Environment) -> Page {
    let mut page = Page::default();
    page.heading("Files read, the first has precedence");
    if configuration.files.is_empty() {
        page.push(Line::of(Label::Dim, "none").indented(2));
    }
    for file in &configuration.files {
        page.push(
            Line::of(Label::Name, file.path.display().to_string())
                .then(Label::Dim, format!("  {}, {}", role(file.role), layer(file.layer)))
                .indented(2),
        );
    }
    page.heading("Places searched");
    if configuration.searched.is_empty() {
        page.push(Line::of(Label::Dim, "none: files were named").indented(2));
    }
    for path in &configuration.searched {
        page.push(Line::plain(path.display().to_string()).indented(2));
    }
    page.heading("Directories");
    for (name, path) in directories(environment) {
        let mut line = Line::of(Label::Dim, name).indented(2);
        line.pad_to(17);
        line.push(Label::Plain, path.unwrap_or_else(|| "none".to_owned()));
        page.push(line);
    }
    page
}

/// The same in JSON.
pub fn paths_json(configuration: &Configuration, environment: &dyn Environment) -> Value {
    let searched: Vec<String> =
        configuration.searched.iter().map(|path| path.display().to_string()).collect();
    let directories: BTreeMap<&str, Option<String>> = directories(environment).into();
    json!({
        "files": files_json(configuration),
        "searched": searched,
        "directories": directories,
    })
}

fn directories(environment: &dyn Environment) -> [(&'static str, Option<String>); 3] {
    let show = |path: Option<std::path::PathBuf>| path.map(|path| path.display().to_string());
    [
        ("configuration", show(environment.config_dir())),
        ("state", show(environment.state_dir())),
        ("cache", show(environment.cache_dir())),
    ]
}

fn files_json(configuration: &Configuration) -> Value {
    let files = configuration.files.iter().map(|file| {
        json!({
            "path": file.path.display().to_string(),
            "role": role(file.role),
            "layer": layer(file.layer),
        })
    });
    Value::Array(files.collect())
}

fn tool_json(tool: &ToolSpec) -> Value {
    let definition = &tool.definition;
    json!({
        "name": definition.name.full(),
        "source": caret::location(&tool.place),
        "kind": tool.kind,
        "trusted": tool.trust == Trust::Trusted,
        "base_dir": tool.base_dir.display().to_string(),
        "entry": masked(&tool.entry.to_json()),
    })
}

fn server_json(server: &ServerSpec) -> Value {
    let mut value = json!({
        "name": server.name,
        "source": caret::location(&server.place),
        "description": server.description,
        "trusted": server.trust == Trust::Trusted,
    });
    let mut add = |key: &str, field: Value| {
        if let Some(fields) = value.as_object_mut() {
            fields.insert(key.to_owned(), field);
        }
    };
    match &server.endpoint {
        Endpoint::Stdio { command, args, env, env_keys, cwd } => {
            add("command", json!(command));
            add("args", json!(args));
            let names: BTreeMap<&str, &str> = env.keys().map(|k| (k.as_str(), MASK)).collect();
            add("env", json!(names));
            add("env_passed_through", json!(env_keys));
            add("cwd", json!(cwd.display().to_string()));
        }
        Endpoint::Http { url, headers, auth } => {
            add("url", json!(masked_url(url.as_str())));
            let names: BTreeMap<&str, &str> =
                headers.iter().map(|(name, _)| (name.as_str(), MASK)).collect();
            add("headers", json!(names));
            add(
                "auth",
                match auth {
                    AuthSpec::None => Value::Null,
                    AuthSpec::Bearer { variable, .. } => {
                        json!({ "type": "bearer", "token": MASK, "variable": variable })
                    }
                },
            );
        }
    }
    add(
        "protocol",
        json!(match server.protocol {
            ProtocolChoice::Auto => "auto",
            ProtocolChoice::Legacy => "legacy",
            ProtocolChoice::Modern => "2026-07-28",
        }),
    );
    add("timeout_ms", server.timeout.map_or(Value::Null, millis));
    add("start_timeout_ms", server.start_timeout.map_or(Value::Null, millis));
    add("include", json!(server.include));
    add("exclude", json!(server.exclude));
    add("roots", json!(server.roots));
    add("routing_weight", json!(server.routing_weight));
    add("retries", json!(server.retries));
    add("requires_approval", json!(server.requires_approval));
    let declared: Vec<&str> = server.provides_tools.iter().map(|t| t.name.tool()).collect();
    add("provides_tools", json!(declared));
    value
}

fn record_json(record: &crate::config::spec::RecordSpec) -> Value {
    json!({
        "enabled": record.enabled,
        "path": record.path.as_deref().map(|path: &Path| path.display().to_string()),
        "sync": record.sync,
        "retention_days": record.retention.as_secs() / 86_400,
    })
}

/// An entry as it was written and expanded, without what may be secret: all values of `env`,
/// `headers` and `auth`, whatever has a telling name, and passwords in URLs.
fn masked(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| {
                    let value = if is_telling(key) { hidden(value) } else { masked(value) };
                    (key.clone(), value)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(masked).collect()),
        Value::String(text) => Value::String(masked_url(text)),
        other => other.clone(),
    }
}

/// The shape of a value without any of its leaves.
fn hidden(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), hidden(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(hidden).collect()),
        Value::Null => Value::Null,
        _ => Value::String(MASK.to_owned()),
    }
}

fn is_telling(key: &str) -> bool {
    let key = key.to_lowercase();
    matches!(key.as_str(), "env" | "headers" | "auth" | "cookie" | "cookies")
        || ["token", "secret", "password", "passwd", "credential", "api_key", "apikey", "private"]
            .iter()
            .any(|part| key.contains(part))
}

/// A URL without its password and without the values of telling query parameters; any other text
/// as it is.
fn masked_url(text: &str) -> String {
    let Ok(mut url) = url::Url::parse(text) else { return text.to_owned() };
    if url.cannot_be_a_base() {
        return text.to_owned();
    }
    let has_password = url.password().is_some();
    let has_secret = url.query_pairs().any(|(key, _)| is_telling(&key) || key == "key");
    if !has_password && !has_secret {
        return text.to_owned();
    }
    if has_password && url.set_password(Some(MASK)).is_err() {
        return MASK.to_owned();
    }
    if has_secret {
        let pairs: Vec<(String, String)> = url
            .query_pairs()
            .map(|(key, value)| {
                let secret = is_telling(&key) || key == "key";
                (key.into_owned(), if secret { MASK.to_owned() } else { value.into_owned() })
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url.to_string()
}

/// `2 errors and 1 warning`.
pub fn tally(errors: usize, warnings: usize) -> String {
    let parts: Vec<String> = [
        (errors > 0).then(|| plural(errors, "error", "errors")),
        (warnings > 0).then(|| plural(warnings, "warning", "warnings")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "no problem".to_owned() } else { parts.join(" and ") }
}

fn yaml(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => String::new(),
        Value::Object(_) | Value::Array(_) => crate::cli::output::yaml::document(value),
        other => json_text::compact(other),
    }
}

fn role(role: FileRole) -> &'static str {
    match role {
        FileRole::Tools => "tools",
        FileRole::Servers => "servers",
    }
}

fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Flag => "named on the command line",
        Layer::Variable => "named by a variable",
        Layer::Project => "project",
        Layer::User => "user",
        Layer::Embedded => "built in",
    }
}

fn action(action: PolicyAction) -> &'static str {
    match action {
        PolicyAction::Allow => "allow",
        PolicyAction::Ask => "ask",
        PolicyAction::Deny => "deny",
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use insta::assert_snapshot;
    use secrecy::SecretString;

    use super::*;
    use crate::cli::output::Palette;
    use crate::config::environment::FixedEnvironment;
    use crate::config::spec::{DisabledEntry, LoadedFile};
    use crate::model::Place;

    const SECRET: &str = "hunter2";

    fn place(line: u32, text: &str) -> Place {
        Place { file: Arc::new(PathBuf::from("mcp.yaml")), line, column: 3, text: Arc::from(text) }
    }

    fn server(endpoint: Endpoint) -> ServerSpec {
        ServerSpec {
            name: "github".to_owned(),
            description: None,
            endpoint,
            protocol: ProtocolChoice::Auto,
            timeout: Some(std::time::Duration::from_secs(30)),
            start_timeout: None,
            exclude: vec!["*-delete".to_owned()],
            include: None,
            roots: Vec::new(),
            routing_weight: None,
            dev: false,
            provides_tools: Vec::new(),
            retries: 0,
            requires_approval: false,
            place: place(2, ""),
            trust: Trust::Trusted,
        }
    }

    fn configuration() -> Configuration {
        let stdio = Endpoint::Stdio {
            command: "npx".to_owned(),
            args: vec!["server".to_owned()],
            env: BTreeMap::from([("TOKEN".to_owned(), SecretString::from(SECRET))]),
            env_keys: vec!["HOME".to_owned()],
            cwd: PathBuf::from("/srv"),
        };
        let http = Endpoint::Http {
            url: url::Url::parse(&format!("https://me:{SECRET}@h/?key={SECRET}&a=b")).unwrap(),
            headers: vec![("X-Key".to_owned(), SecretString::from(SECRET))],
            auth: AuthSpec::Bearer {
                token: SecretString::from(SECRET),
                variable: Some("T".to_owned()),
            },
        };
        let broken = Problem::error("unknown kind 'comand'")
            .at(place(9, "  kind: comand"))
            .hint("did you mean 'command'?")
            .entry("log");
        Configuration {
            servers: vec![server(stdio), server(http)],
            files: vec![LoadedFile {
                path: PathBuf::from("/p/mcp.yaml"),
                role: FileRole::Servers,
                layer: Layer::Project,
            }],
            searched: vec![PathBuf::from("/p")],
            disabled: vec![DisabledEntry {
                name: "log".to_owned(),
                role: FileRole::Tools,
                problem: broken.clone(),
            }],
            problems: vec![broken, Problem::warning("unknown key 'x'").at(place(3, "x: 1"))],
            ..Configuration::default()
        }
    }

    #[test]
    fn findings_show_place_line_and_caret() {
        let page = findings(&configuration().problems);
        assert_snapshot!(Palette::default().page(&page), @r"
        mcp.yaml:9:3: error: unknown kind 'comand' (log)
          9 │   kind: comand
            │   ^
          hint: did you mean 'command'?
        mcp.yaml:3:3: warning: unknown key 'x'
          3 │ x: 1
            │   ^
        ");
        let json = findings_json(&configuration().problems);
        assert_eq!((&json["errors"], &json["warnings"]), (&json!(1), &json!(1)));
        assert_eq!(json["problems"][0]["line"], 9);
    }

    #[test]
    fn entries_are_shown_with_their_place_and_without_secrets() {
        let text = Palette::default().page(&page(&configuration()));
        assert_snapshot!(text, @r#"
        server github  mcp.yaml:2:3
          trusted: true
          command: npx
          args:
            - server
          env:
            TOKEN: "***"
          env_passed_through:
            - HOME
          cwd: /srv
          protocol: auto
          timeout_ms: 30000.0
          exclude:
            - "*-delete"
          retries: 0
          requires_approval: false

        server github  mcp.yaml:2:3
          trusted: true
          url: "https://me:***@h/?key=***&a=b"
          headers:
            X-Key: "***"
          auth:
            type: bearer
            token: "***"
            variable: T
          protocol: auto
          timeout_ms: 30000.0
          exclude:
            - "*-delete"
          retries: 0
          requires_approval: false

        stats
          enabled: true
          sync: false
          retention_days: 90

        audit
          enabled: true
          sync: false
          retention_days: 90

        out of service log
          mcp.yaml:9:3: error: unknown kind 'comand' (log)
            9 │   kind: comand
              │   ^
            hint: did you mean 'command'?
        "#);
        assert!(!text.contains(SECRET));
        assert!(!json(&configuration()).to_string().contains(SECRET));
    }

    #[test]
    fn entries_of_any_kind_are_masked_by_the_names_of_their_keys() {
        let entry = json!({
            "headers": { "Authorization": format!("Bearer {SECRET}"), "X": [SECRET] },
            "endpoint_url": format!("https://u:{SECRET}@h/p?api_key={SECRET}"),
            "client_secret": SECRET,
            "description": "stays",
            "port": 80,
        });
        let shown = masked(&entry);
        assert!(!shown.to_string().contains(SECRET), "{shown}");
        assert_eq!(shown["description"], "stays");
        assert_eq!(shown["port"], 80);
    }

    #[test]
    fn paths_name_files_and_directories() {
        let environment =
            FixedEnvironment { root: Some(PathBuf::from("/r")), ..FixedEnvironment::default() };
        let page = paths(&configuration(), &environment);
        assert_snapshot!(Palette::default().page(&page), @r"
        Files read, the first has precedence
          /p/mcp.yaml  servers, project

        Places searched
          /p

        Directories
          configuration  /r/config
          state          /r/state
          cache          /r/cache
        ");
        let json = paths_json(&configuration(), &environment);
        assert_eq!(json["directories"]["cache"], "/r/cache");
    }
}
