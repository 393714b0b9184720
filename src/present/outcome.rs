//! The routing of a call, and the preview of `call --dry-run`.

use crate::host::policy::Decision;
use crate::host::request::DryRun;
use crate::model::Routing;
use crate::present::{Line, Page, Role};

pub fn routing(routing: &Routing) -> Vec<Line> {
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
    lines.iter().map(|line| Line::styled(Role::Dim, line)).collect()
}

/// What a call would send or start, and whether it would need approval or be refused.
pub fn preview(dry_run: &DryRun) -> Page {
    let preview = &dry_run.preview;
    let mut page = Page::from(Line::styled(Role::Title, &preview.summary));
    let (label, verdict, reason) = match &dry_run.decision {
        Decision::Allow(_) => (Role::Dim, "runs without asking", ""),
        Decision::Ask(reason) => (Role::Warning, "needs approval: ", reason.as_str()),
        Decision::Deny(reason) => (Role::Error, "denied by ", reason.as_str()),
    };
    page.push(Line::styled(label, verdict).then(Role::Plain, reason));
    page.json(0, &preview.request);
    page
}
