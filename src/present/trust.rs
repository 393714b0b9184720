//! The trust question about a project, and the list of trusted projects, as pages.

use crate::config::consent::{ProjectRecord, TrustRequest, TrustRequestLine};
use crate::present::{Line, Page, Role};

/// The question: the difference if the project was trusted before, otherwise everything.
pub fn question(request: &TrustRequest) -> Page {
    let title = match request.previous {
        Some(_) => " changed since it was trusted:",
        None => " would:",
    };
    let mut page = heading(request, title);
    lines(&request.difference_lines(), &mut page);
    page
}

pub fn whole(request: &TrustRequest) -> Page {
    let mut page = heading(request, " would:");
    lines(&request.full_lines(), &mut page);
    page
}

fn heading(request: &TrustRequest, title: &str) -> Page {
    Page::from(
        Line::plain("The project ")
            .then(Role::Name, request.root.display().to_string())
            .then(Role::Plain, title),
    )
}

fn lines(lines: &[TrustRequestLine], page: &mut Page) {
    for line in lines {
        page.push(match line {
            TrustRequestLine::Heading(text) => Line::styled(Role::Title, text).indented(2),
            TrustRequestLine::Entry { name, text } => {
                Line::styled(Role::Name, name).then(Role::Plain, format!("  {text}")).indented(4)
            }
            TrustRequestLine::Detail(text) => Line::plain(text).indented(6),
            TrustRequestLine::Warning(text) => {
                Line::styled(Role::Warning, format!("warning: {text}")).indented(6)
            }
            TrustRequestLine::Previous(text) => {
                Line::styled(Role::Dim, format!("before: {text}")).indented(6)
            }
        });
    }
}

pub fn list<'a>(projects: impl Iterator<Item = &'a ProjectRecord>) -> Page {
    let mut page = Page::default();
    for project in projects {
        page.blank_line();
        let mark = if project.allows_code_changes { "  as its author" } else { "" };
        page.push(
            Line::styled(Role::Name, project.root.display().to_string())
                .then(Role::Dim, format!("  {}{mark}", project.trusted_at)),
        );
        let request = TrustRequest {
            root: project.root.clone(),
            bundle: project.bundle.clone(),
            ..TrustRequest::default()
        };
        lines(&request.full_lines(), &mut page);
    }
    page
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use insta::assert_snapshot;

    use super::*;
    use crate::config::consent::{BoundFile, Bundle, EntryRecord};
    use crate::present::page::LineRenderer;

    fn bundle(version: &str) -> Bundle {
        let file = BoundFile {
            resolved: "/p/mcp.yaml".into(),
            sha256: Some(version.to_owned()),
            ..BoundFile::default()
        };
        let entry = |name: &str, lines: &[&str]| EntryRecord {
            name: name.to_owned(),
            file: "mcp.yaml".to_owned(),
            digest: format!("{name}{lines:?}"),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        let command = format!("starts npx -y server@{version} (/usr/bin/npx)");
        Bundle {
            files: [("mcp.yaml".to_owned(), file)].into(),
            entries: vec![
                entry("github", &[&command, "PATH=./bin", "warning: no fixed version"]),
                entry("docs", &["contacts https://docs.example"]),
            ],
            ..Bundle::default()
        }
    }

    #[test]
    fn the_question_shows_the_whole_at_first_and_then_the_difference() {
        let mut request =
            TrustRequest { root: "/p".into(), bundle: bundle("1"), ..TrustRequest::default() };
        let shown =
            |request: &TrustRequest| LineRenderer::default().page(&question(request)).clone();
        assert_snapshot!(shown(&request), @r"
        The project /p would:
          mcp.yaml
            github  starts npx -y server@1 (/usr/bin/npx)
              PATH=./bin
              warning: no fixed version
            docs  contacts https://docs.example
        ");
        request.previous = Some(Arc::new(ProjectRecord {
            root: "/p".into(),
            trusted_at: String::new(),
            allows_code_changes: false,
            bundle: bundle("1"),
        }));
        request.bundle = bundle("2");
        assert_snapshot!(shown(&request), @r"
        The project /p changed since it was trusted:
          mcp.yaml
            github  starts npx -y server@2 (/usr/bin/npx)
              PATH=./bin
              warning: no fixed version
              before: starts npx -y server@1 (/usr/bin/npx)
        ");
    }
}
