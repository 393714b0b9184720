//! The routing of a call, and the preview of `call --dry-run`.

use crate::cli::output::{Output, SpanStyle, StyledLine, StyledPage};
use crate::host::policy::Decision;
use crate::host::request::DryRun;
use crate::model::Routing;
use crate::util::json;

pub fn note_routing(output: &Output, routing: Option<&Routing>) {
    if output.verbosity() > 0 {
        for line in routing.into_iter().flat_map(lines) {
            output.note(&StyledLine::styled(SpanStyle::Dim, line));
        }
    }
}

fn lines(routing: &Routing) -> Vec<String> {
    let skipped = routing.skipped.iter();
    let mut lines: Vec<String> = skipped
        .map(|skipped| format!("'{}' was skipped: {}", skipped.server, skipped.reason))
        .collect();
    lines.push(match routing.others.as_slice() {
        [] => format!("the server '{}' was chosen", routing.server),
        others => {
            format!("the server '{}' was chosen over {}", routing.server, others.join(", "))
        }
    });
    lines
}

/// What a call would send or start, and whether it would need approval or be refused.
pub fn preview(rehearsal: &DryRun) -> StyledPage {
    let preview = &rehearsal.preview;
    let mut page = StyledPage::from(StyledLine::styled(SpanStyle::Heading, &preview.summary));
    let (label, verdict, reason) = match &rehearsal.decision {
        Decision::Allow(_) => (SpanStyle::Dim, "", ""),
        Decision::Ask(reason) => (SpanStyle::Warning, "needs approval: ", reason.as_str()),
        Decision::Deny(reason) => (SpanStyle::Error, "denied by ", reason.as_str()),
    };
    if !verdict.is_empty() {
        page.push(StyledLine::styled(label, verdict).then(SpanStyle::Plain, reason));
    }
    page.text(SpanStyle::Plain, 0, &json::pretty(&preview.request));
    page
}
