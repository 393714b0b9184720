//! `serve token`: issued tokens as a table, and a new token as a line.

use std::time::Duration;

use crate::present::{Line, Page, Role, Table, TableColumn};
use crate::serve::listen::token_store::IssuedToken;
use crate::util::timestamp::local_time;

/// The tokens; `now` is the time since the Unix epoch.
pub fn table(tokens: &[IssuedToken], now: Duration, width: Option<usize>) -> Page {
    let mut table = Table::new([
        TableColumn::new("ID"),
        TableColumn::new("CLIENT").shrinks_to(12),
        TableColumn::new("PROFILE").shrinks_to(8).droppable(1),
        TableColumn::new("TOOLS").shrinks_to(12),
        TableColumn::new("ISSUED").droppable(2),
        TableColumn::new("EXPIRES"),
    ]);
    for token in tokens {
        let expires = if token.is_expired(now) {
            Line::styled(Role::Warning, "expired")
        } else {
            Line::plain(time(token.expires))
        };
        table.row([
            Line::styled(Role::Name, &token.id),
            Line::plain(&token.client),
            Line::plain(token.profile.as_deref().unwrap_or_default()),
            Line::plain(patterns(token)),
            Line::styled(Role::Dim, time(token.issued)),
            expires,
        ]);
    }
    table.layout(width)
}

pub fn issued(token: &IssuedToken) -> Line {
    Line::styled(Role::Success, "issued ")
        .then(Role::Name, &token.id)
        .then(Role::Plain, format!(" to {}", token.client))
        .then(Role::Dim, format!(", expires {}; it is not shown again", time(token.expires)))
}

fn patterns(token: &IssuedToken) -> String {
    if token.tools.is_empty() { "all".to_owned() } else { token.tools.join(" ") }
}

fn time(at: u64) -> String {
    local_time(Duration::from_secs(at).as_secs_f64())
}
