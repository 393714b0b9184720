//! `config`: what was loaded, from which files, and the diagnostics.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::environment::Environment;
use crate::config::show::ConfigValue;
use crate::config::spec::{Configuration, FileRole, Layer};
use crate::model::Diagnostic;
use crate::present::{Line, Page, Role, messages, plural};

pub fn findings(problems: &[Diagnostic]) -> Page {
    let mut page = Page::default();
    for problem in problems {
        page.append(messages::diagnostic(problem));
    }
    page
}

pub fn count_diagnostics(configuration: &Configuration) -> (usize, usize) {
    let errors = configuration.diagnostics.iter().filter(|problem| problem.is_error()).count();
    (errors, configuration.diagnostics.len() - errors)
}

/// How many entries are out of service; one may have several errors.
pub fn out_of_service(problems: &[Diagnostic]) -> usize {
    let errors = || problems.iter().filter(|problem| problem.is_error());
    let entries: BTreeSet<&str> = errors().filter_map(|p| p.entry.as_deref()).collect();
    entries.len() + errors().filter(|problem| problem.entry.is_none()).count()
}

/// Every value with its location. A value that is not used, because a file with higher precedence
/// has an entry of the same name, is marked.
pub fn values(values: &[ConfigValue]) -> Page {
    let mut page = Page::default();
    let mut file: Option<&Path> = None;
    for shown in values {
        let path = shown.location.file.as_path();
        if file != Some(path) {
            file = Some(path);
            page.blank_line();
            page.push(
                Line::styled(Role::Title, path.display().to_string())
                    .then(Role::Dim, format!("  {}", layer_name(shown.layer))),
            );
        }
        let label = if shown.is_shadowed { Role::Dim } else { Role::Name };
        let mut line = Line::styled(Role::Dim, format!("{:>5}  ", shown.location.line))
            .then(label, &shown.path)
            .then(Role::Dim, " = ")
            .then(Role::Plain, &shown.value);
        if shown.is_shadowed {
            line.push(Role::Warning, "  (not used)");
        }
        page.push(line);
    }
    page
}

/// Where toolhost looked for files, which it read, and the directories of this user.
pub fn paths(configuration: &Configuration, environment: &dyn Environment) -> Page {
    let mut page = Page::default();
    page.heading("Files read, highest precedence first");
    if configuration.files.is_empty() {
        page.push(Line::styled(Role::Dim, "none").indented(2));
    }
    for file in &configuration.files {
        page.push(
            Line::styled(Role::Name, file.path.display().to_string())
                .then(Role::Dim, format!("  {}, {}", role_name(file.role), layer_name(file.layer)))
                .indented(2),
        );
    }
    page.heading("Places searched");
    if configuration.searched.is_empty() {
        page.push(Line::styled(Role::Dim, "none: files were named").indented(2));
    }
    for path in &configuration.searched {
        page.push(Line::plain(path.display().to_string()).indented(2));
    }
    page.heading("Directories");
    for (name, path) in [
        ("configuration", environment.config_dir()),
        ("state", environment.state_dir()),
        ("cache", environment.cache_dir()),
    ] {
        let path = path.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        page.fact(17, name, Line::plain(path));
    }
    page
}

/// `2 errors and 1 warning`.
pub fn diagnostic_counts(errors: usize, warnings: usize) -> String {
    let mut parts = Vec::new();
    parts.extend((errors > 0).then(|| plural(errors, "error", "errors")));
    parts.extend((warnings > 0).then(|| plural(warnings, "warning", "warnings")));
    if parts.is_empty() { "no problems".to_owned() } else { parts.join(" and ") }
}

pub(crate) fn role_name(role: FileRole) -> &'static str {
    match role {
        FileRole::Tools => "tools",
        FileRole::Servers => "servers",
    }
}

/// How a file was found, in words.
pub(crate) fn layer_name(layer: Layer) -> &'static str {
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
    use crate::cli::commands::config::{ConfigCheckJson, ConfigPathsJson, ConfigValuesJson};
    use crate::config::environment::FixedEnvironment;
    use crate::config::node::SourceText;
    use crate::config::spec::LoadedFile;
    use crate::model::SourceLocation;
    use crate::present::page::LineRenderer;

    fn json_of(value: &impl serde::Serialize) -> serde_json::Value {
        serde_json::to_value(value).unwrap()
    }

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
                text: SourceText::new("mcp.yaml", ""),
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
        let json = json_of(&ConfigCheckJson::from(configuration().diagnostics.as_slice()));
        assert_eq!(
            (&json["errors"], &json["warnings"]),
            (&serde_json::Value::from(1), &serde_json::Value::from(1))
        );
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
        let json = json_of(&ConfigValuesJson::from(list.as_slice()));
        assert_eq!(json["values"][2]["value"], 30);
        assert_eq!(json["values"][2]["used"], false);
    }

    #[test]
    fn paths_name_files_and_directories() {
        let environment =
            FixedEnvironment { root: Some(PathBuf::from("/r")), ..FixedEnvironment::default() };
        let page = paths(&configuration(), &environment);
        assert_snapshot!(LineRenderer::default().page(&page), @r"
        Files read, highest precedence first
          /p/mcp.yaml  servers, project

        Places searched
          /p

        Directories
          configuration  /r/config
          state          /r/state
          cache          /r/cache
        ");
        let json =
            json_of(&ConfigPathsJson::from((&configuration(), &environment as &dyn Environment)));
        assert_eq!(json["directories"]["cache"], "/r/cache");
    }

    #[test]
    fn an_entry_with_several_errors_is_one_entry() {
        let error = |entry: &str| Diagnostic::error("wrong").with_entry(entry);
        let problems = [
            error("a"),
            error("a"),
            error("b"),
            Diagnostic::error("no entry"),
            Diagnostic::warning("hm").with_entry("c"),
        ];
        assert_eq!(out_of_service(&problems), 3);
    }
}
