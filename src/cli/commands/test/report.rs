//! What came of the tests: for people, as JSON, as JUnit's XML.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::suite::TestCase;
use crate::model::{Error, ErrorKind};
use crate::present::{Line, Page, Role, plural};
use crate::util::units::show_duration;

/// What came of all tests.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TestReport {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed, and steps of setup and cleanup that did.
    pub failed: usize,
    /// Tests that were not run.
    pub skipped: usize,
    /// All of them, in their order.
    pub tests: Vec<CaseReport>,
}

/// What came of one test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CaseReport {
    /// The suite.
    pub file: String,
    /// Its line there.
    pub line: u32,
    /// The name of the test.
    pub name: String,
    /// The tool.
    pub tool: String,
    /// Whether it is a test, or prepares or clears up after them.
    pub part: Part,
    /// Whether it ran.
    pub ran: bool,
    /// Expectations that were not met.
    pub failures: Vec<Failure>,
    /// The ID of its call in the history.
    pub call_id: Option<String>,
    /// How long the call took.
    pub duration_ms: Option<f64>,
}

/// A part of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It runs before the tests.
    Setup,
    /// It is a test.
    Test,
    /// It runs after the tests.
    Cleanup,
}

/// An expectation that was not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// Which, and what was there instead.
    pub message: String,
    /// Lines that were expected (-) and are there instead (+), and those around them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<String>,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, difference: Vec::new() }
    }
}

impl CaseReport {
    /// A test that was not run yet.
    pub(super) fn new(file: &Path, part: Part, case: &TestCase) -> Self {
        Self {
            file: file.display().to_string(),
            line: case.location.line,
            name: case.name.clone(),
            tool: case.tool.clone(),
            part,
            ran: false,
            failures: Vec::new(),
            call_id: None,
            duration_ms: None,
        }
    }

    pub(super) fn passed(&self) -> bool {
        self.ran && self.failures.is_empty()
    }

    fn has_failed(&self) -> bool {
        self.ran && !self.failures.is_empty()
    }

    pub(super) fn page(&self, verbose: bool) -> Page {
        let (word, role) = match () {
            () if self.passed() => ("ok", Role::Success),
            () if self.has_failed() => ("FAILED", Role::Error),
            () => ("skipped", Role::Dim),
        };
        let mut line = Line::styled(role, format!("{word:<8}")).then(Role::Name, &self.name);
        if self.part != Part::Test {
            line.push(Role::Dim, if self.part == Part::Setup { " (setup)" } else { " (cleanup)" });
        }
        if let Some(duration) = self.duration_ms {
            let duration = Duration::try_from_secs_f64(duration / 1e3).unwrap_or_default();
            line.push(Role::Dim, format!("  {}", show_duration(duration)));
        }
        if self.has_failed() {
            line.push(Role::Dim, format!("  {}:{}", self.file, self.line));
        }
        let mut page = Page::from(line);
        for failure in &self.failures {
            page.text(Role::Plain, 8, &failure.message);
            for line in &failure.difference {
                let role = match line.as_bytes().first() {
                    Some(b'-') => Role::Error,
                    Some(b'+') => Role::Success,
                    _ => Role::Plain,
                };
                page.text(role, 10, line);
            }
        }
        if let Some(id) = self.call_id.as_ref().filter(|_| verbose || self.has_failed()) {
            page.text(Role::Dim, 8, &format!("toolhost history show {id}"));
        }
        page
    }
}

impl TestReport {
    pub(super) fn add(&mut self, case: CaseReport) {
        let is_test = case.part == Part::Test;
        self.failed += usize::from(case.has_failed());
        self.passed += usize::from(is_test && case.passed());
        self.skipped += usize::from(is_test && !case.ran);
        self.tests.push(case);
    }

    pub(super) fn summary(&self) -> Page {
        let mut line = match self.failed {
            0 => {
                let passed = plural(self.passed, "test", "tests");
                Line::styled(Role::Success, format!("{passed} passed"))
            }
            failed => Line::styled(Role::Error, format!("{failed} failed, {} passed", self.passed)),
        };
        if self.skipped > 0 {
            line.push(Role::Dim, format!(", {} skipped", self.skipped));
        }
        Page::from(line)
    }

    pub(super) fn failure(&self) -> Option<Error> {
        let what = plural(self.failed, "test failed", "tests failed");
        (self.failed > 0).then(|| Error::new(ErrorKind::Check, what))
    }

    pub(super) fn junit(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
        for suite in self.tests.chunk_by(|one, other| one.file == other.file) {
            let count = |is: fn(&CaseReport) -> bool| suite.iter().filter(|case| is(case)).count();
            let _infallible = writeln!(
                xml,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
                escaped(suite.first().map_or("", |case| &case.file)),
                suite.len(),
                count(CaseReport::has_failed),
                count(|case| !case.ran),
            );
            for case in suite {
                case.junit(&mut xml);
            }
            xml.push_str("  </testsuite>\n");
        }
        xml.push_str("</testsuites>\n");
        xml
    }
}

impl CaseReport {
    fn junit(&self, xml: &mut String) {
        let seconds = self.duration_ms.unwrap_or_default() / 1e3;
        let _infallible = writeln!(
            xml,
            "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\" line=\"{}\" time=\"{seconds:.6}\">",
            escaped(&self.name),
            escaped(&self.tool),
            escaped(&self.file),
            self.line,
        );
        if !self.ran {
            xml.push_str("      <skipped/>\n");
        }
        for failure in &self.failures {
            let _infallible = writeln!(
                xml,
                "      <failure message=\"{}\">{}</failure>",
                escaped(&failure.message),
                escaped(&failure.difference.join("\n")),
            );
        }
        xml.push_str("    </testcase>\n");
    }
}

/// Text as XML: what XML cannot hold is left out.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' => xml.push_str("&#10;"),
            '\t' => xml.push('\t'),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => xml.push(c),
        }
    }
    xml
}
