//! `config`: what was loaded, from where, and what is wrong with it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::context::plural;
use crate::cli::output::{SpanStyle, StyledLine, StyledPage, messages};
use crate::config::environment::Environment;
use crate::config::show::ConfigValue;
use crate::config::spec::{Configuration, FileRole, Layer};
use crate::model::Diagnostic;

/// Every finding, in file order.
pub fn findings(problems: &[Diagnostic]) -> StyledPage {
    let mut page = StyledPage::default();
    for problem in problems {
        page.append(messages::diagnostic(problem));
    }
    page
}

/// Every finding, in JSON.
pub fn findings_json(problems: &[Diagnostic]) -> Value {
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    json!({
        "problems": problems.iter().map(messages::diagnostic_json).collect::<Vec<_>>(),
        "errors": errors,
        "warnings": problems.len() - errors,
    })
}

/// Every value with its place. One that is not used, because a file that wins has an entry of the
/// same name, says so.
pub fn values(values: &[ConfigValue]) -> StyledPage {
    let mut page = StyledPage::default();
    let mut file: Option<&Path> = None;
    for shown in values {
        let path = shown.location.file.as_path();
        if file != Some(path) {
            file = Some(path);
            page.blank_line();
            page.push(
                StyledLine::styled(SpanStyle::Heading, path.display().to_string())
                    .then(SpanStyle::Dim, format!("  {}", layer(shown.layer))),
            );
        }
        let label = if shown.is_shadowed { SpanStyle::Dim } else { SpanStyle::Name };
        let mut line = StyledLine::styled(SpanStyle::Dim, format!("{:>5}  ", shown.location.line))
            .then(label, &shown.path)
            .then(SpanStyle::Dim, " = ")
            .then(SpanStyle::Plain, &shown.value);
        if shown.is_shadowed {
            line.push(SpanStyle::Warning, "  (not used)");
        }
        page.push(line);
    }
    page
}

/// Every value with its place, in JSON.
pub fn values_json(values: &[ConfigValue]) -> Value {
    let values = values.iter().map(|shown| {
        let value: Value = serde_json::from_str(&shown.value).unwrap_or_default();
        json!({
            "path": shown.path,
            "value": value,
            "file": shown.location.file.display().to_string(),
            "line": shown.location.line,
            "column": shown.location.column,
            "layer": layer(shown.layer),
            "used": !shown.is_shadowed,
        })
    });
    json!({ "values": values.collect::<Vec<_>>() })
}

/// Where files were looked for, which were read, and the directories of this user.
pub fn paths(configuration: &Configuration, environment: &dyn Environment) -> StyledPage {
    let mut page = StyledPage::default();
    page.heading("Files read, the first has precedence");
    if configuration.files.is_empty() {
        page.push(StyledLine::styled(SpanStyle::Dim, "none").indented(2));
    }
    for file in &configuration.files {
        page.push(
            StyledLine::styled(SpanStyle::Name, file.path.display().to_string())
                .then(SpanStyle::Dim, format!("  {}, {}", role(file.role), layer(file.layer)))
                .indented(2),
        );
    }
    page.heading("Places searched");
    if configuration.searched.is_empty() {
        page.push(StyledLine::styled(SpanStyle::Dim, "none: files were named").indented(2));
    }
    for path in &configuration.searched {
        page.push(StyledLine::plain(path.display().to_string()).indented(2));
    }
    page.heading("Directories");
    for (name, path) in directories(environment) {
        let mut line = StyledLine::styled(SpanStyle::Dim, name).indented(2);
        line.pad_to(17);
        line.push(SpanStyle::Plain, path.unwrap_or_else(|| "none".to_owned()));
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

/// `2 errors and 1 warning`.
pub fn diagnostic_counts(errors: usize, warnings: usize) -> String {
    let parts: Vec<String> = [
        (errors > 0).then(|| plural(errors, "error", "errors")),
        (warnings > 0).then(|| plural(warnings, "warning", "warnings")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "no problem".to_owned() } else { parts.join(" and ") }
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use insta::assert_snapshot;

    use super::*;
    use crate::cli::output::LineRenderer;
    use crate::config::environment::FixedEnvironment;
    use crate::config::spec::LoadedFile;
    use crate::model::SourceLocation;

    fn place(line: u32, text: &str) -> SourceLocation {
        SourceLocation {
            file: Arc::new(PathBuf::from("mcp.yaml")),
            line,
            column: 3,
            text: Arc::from(text),
        }
    }

    fn configuration() -> Configuration {
        let broken = Diagnostic::error("unknown kind 'comand'")
            .with_location(place(9, "  kind: comand"))
            .with_hint("did you mean 'command'?")
            .with_entry("log");
        Configuration {
            files: vec![LoadedFile {
                path: PathBuf::from("/p/mcp.yaml"),
                role: FileRole::Servers,
                layer: Layer::Project,
            }],
            searched: vec![PathBuf::from("/p")],
            diagnostics: vec![
                broken,
                Diagnostic::warning("unknown key 'x'").with_location(place(3, "x: 1")),
            ],
            ..Configuration::default()
        }
    }

    #[test]
    fn findings_show_place_line_and_caret() {
        let page = findings(&configuration().diagnostics);
        assert_snapshot!(LineRenderer::default().page(&page), @r"
        mcp.yaml:9:3: error: unknown kind 'comand' (log)
          9 │   kind: comand
            │   ^
          hint: did you mean 'command'?
        mcp.yaml:3:3: warning: unknown key 'x'
          3 │ x: 1
            │   ^
        ");
        let json = findings_json(&configuration().diagnostics);
        assert_eq!((&json["errors"], &json["warnings"]), (&json!(1), &json!(1)));
        assert_eq!(json["problems"][0]["line"], 9);
    }

    #[test]
    fn values_are_shown_under_their_file() {
        let value = |path: &str, value: &str, line, shadowed| ConfigValue {
            path: path.to_owned(),
            value: value.to_owned(),
            location: place(line, ""),
            layer: Layer::Project,
            is_shadowed: shadowed,
        };
        let list = [
            value("mcp_servers.a.command", "\"npx\"", 2, false),
            value("mcp_servers.a.env.TOKEN", "\"***\"", 3, false),
            value("mcp_servers.b.timeout", "30", 7, true),
        ];
        assert_snapshot!(LineRenderer::default().page(&values(&list)), @r#"
        mcp.yaml  project
            2  mcp_servers.a.command = "npx"
            3  mcp_servers.a.env.TOKEN = "***"
            7  mcp_servers.b.timeout = 30  (not used)
        "#);
        let json = values_json(&list);
        assert_eq!(json["values"][2]["value"], 30);
        assert_eq!(json["values"][2]["used"], false);
    }

    #[test]
    fn paths_name_files_and_directories() {
        let environment =
            FixedEnvironment { root: Some(PathBuf::from("/r")), ..FixedEnvironment::default() };
        let page = paths(&configuration(), &environment);
        assert_snapshot!(LineRenderer::default().page(&page), @r"
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
