//! All problems of the configuration files: the window opened from the count on the status line.

use crate::model::Diagnostic;
use crate::present::configuration;
use crate::tui::widgets::scroll_text::ScrollText;

/// What the last reading of the files found wrong.
#[derive(Debug, Default)]
pub struct ConfigurationProblems {
    /// The findings as the window shows them, in the order of the files.
    pub text: ScrollText,
    errors: usize,
    warnings: usize,
}

impl ConfigurationProblems {
    pub fn of(diagnostics: &[Diagnostic]) -> Self {
        let mut text = ScrollText::with_indent(4);
        text.page(&configuration::findings(diagnostics));
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        Self { text, errors, warnings: diagnostics.len() - errors }
    }

    pub fn is_empty(&self) -> bool {
        self.errors + self.warnings == 0
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub fn summary(&self) -> String {
        configuration::diagnostic_counts(self.errors, self.warnings)
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
        assert_eq!(problems.summary(), "1 error and 1 warning");
        let shown = problems.text.to_text();
        for part in ["tools.yaml:3:7: error: unknown key 'x'", "did you mean", "warning: no place"]
        {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(ConfigurationProblems::default().is_empty());
    }
}
