//! All problems of the configuration files: the window opened from the count on the status line.

use std::fmt::Write as _;

use crate::model::{Diagnostic, Severity};
use crate::tui::theme::Role;
use crate::tui::widgets::scroll_text::ScrollText;

/// What the last reading of the files found wrong.
#[derive(Debug, Default)]
pub struct ConfigurationProblems {
    /// The findings as the window shows them.
    pub text: ScrollText,
    lines: String,
    errors: usize,
    warnings: usize,
}

impl ConfigurationProblems {
    /// All findings, in the order of the files.
    pub fn of(diagnostics: &[Diagnostic]) -> Self {
        let mut problems = Self { text: ScrollText::with_indent(4), ..Self::default() };
        for diagnostic in diagnostics {
            problems.add(diagnostic);
        }
        problems
    }

    /// How many findings there are in all.
    pub fn len(&self) -> usize {
        self.errors + self.warnings
    }

    /// Whether nothing is wrong with the files.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an entry is out of service.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The counts in words: `2 errors, 1 warning`.
    pub fn summary(&self) -> String {
        let count = |count: usize, word: &str| match count {
            0 => None,
            1 => Some(format!("1 {word}")),
            _ => Some(format!("{count} {word}s")),
        };
        let counts = [count(self.errors, "error"), count(self.warnings, "warning")];
        counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// One line for each finding, for the clipboard: `FILE:LINE:COLUMN: error: MESSAGE (HINT)`.
    pub fn to_text(&self) -> &str {
        &self.lines
    }

    fn add(&mut self, diagnostic: &Diagnostic) {
        let (word, role) = match diagnostic.severity {
            Severity::Error => ("error", Role::Error),
            Severity::Warning => ("warning", Role::Warning),
        };
        match diagnostic.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        let place = diagnostic.location.as_ref().map(|place| {
            let file = place.file.display();
            match place.line {
                0 => file.to_string(),
                line => format!("{file}:{line}:{}", place.column),
            }
        });
        self.text.gap();
        let mut first = vec![(role, format!("{word}  "))];
        first.extend(place.clone().map(|place| (Role::Name, place)));
        self.text.push(first);
        for line in diagnostic.message.lines() {
            self.text.line(Role::Plain, format!("  {line}"));
        }
        let hint = diagnostic.hint.as_deref();
        if let Some(hint) = hint {
            self.text.line(Role::Dim, format!("  hint: {hint}"));
        }
        let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ignored = writeln!(self.lines, "{place}{word}: {}{hint}", diagnostic.message);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::SourceLocation;

    #[test]
    fn each_finding_has_its_place_and_its_hint() {
        let file = Arc::new("tools.yaml".into());
        let place = SourceLocation { file, line: 3, column: 7, text: Arc::from("") };
        let problems = ConfigurationProblems::of(&[
            Diagnostic::error("unknown key 'x'")
                .with_location(place)
                .with_hint("did you mean 'y'?"),
            Diagnostic::warning("no place"),
        ]);
        assert_eq!(problems.summary(), "1 error, 1 warning");
        assert_eq!(
            problems.to_text(),
            "tools.yaml:3:7: error: unknown key 'x' (did you mean 'y'?)\nwarning: no place\n"
        );
        let shown = problems.text.to_text();
        assert!(
            shown.contains("tools.yaml:3:7\n") && shown.contains("hint: did you mean"),
            "{shown}"
        );
        assert!(ConfigurationProblems::default().is_empty());
    }
}
