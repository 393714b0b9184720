//! `serve token`: issued tokens as a table, and a new token as a line.

use std::time::Duration;

use crate::cli::output::table::{Table, TableColumn};
use crate::cli::output::{SpanStyle, StyledLine, StyledPage};
use crate::serve::listen::token_store::IssuedToken;
use crate::util::timestamp::local_time;

/// The tokens; `now` is the time since the Unix epoch.
pub fn table(tokens: &[IssuedToken], now: Duration, width: Option<usize>) -> StyledPage {
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
            StyledLine::styled(SpanStyle::Warning, "expired")
        } else {
            StyledLine::plain(time(token.expires))
        };
        table.row([
            StyledLine::styled(SpanStyle::Name, &token.id),
            StyledLine::plain(&token.client),
            StyledLine::plain(token.profile.as_deref().unwrap_or_default()),
            StyledLine::plain(patterns(token)),
            StyledLine::styled(SpanStyle::Dim, time(token.issued)),
            expires,
        ]);
    }
    table.layout(width)
}

pub fn issued(token: &IssuedToken) -> StyledLine {
    StyledLine::styled(SpanStyle::Success, "issued ")
        .then(SpanStyle::Name, &token.id)
        .then(SpanStyle::Plain, format!(" to {}", token.client))
        .then(SpanStyle::Dim, format!(", expires {}; it is not shown again", time(token.expires)))
}

fn patterns(token: &IssuedToken) -> String {
    if token.tools.is_empty() { "all".to_owned() } else { token.tools.join(" ") }
}

fn time(at: u64) -> String {
    local_time(Duration::from_secs(at).as_secs_f64())
}
