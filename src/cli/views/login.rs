//! `auth list` and `auth login`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::output::table::{Column, Table};
use crate::cli::output::{Label, Line, Page};
use crate::model::LoginReport;
use crate::util::units::show_duration;

/// A login, and the entries that use it.
pub struct Row {
    /// Names of servers with its address.
    pub servers: Vec<String>,
    /// The login.
    pub login: LoginReport,
}

/// The logins as a table; `now` is the time since the Unix epoch.
pub fn table(rows: &[Row], now: Duration, width: Option<usize>) -> Page {
    let mut table = Table::new([
        Column::new("SERVER").shrinks_to(12),
        Column::new("ADDRESS").shrinks_to(20).droppable(1),
        Column::new("ISSUER").shrinks_to(20),
        Column::new("SCOPES").shrinks_to(12).droppable(2),
        Column::new("EXPIRES"),
        Column::new("RENEWED"),
    ]);
    for Row { servers, login } in rows {
        let (label, expires) = expiry(login, now);
        table.row([
            Line::of(Label::Name, servers.join(", ")),
            Line::plain(&login.url),
            Line::plain(&login.issuer),
            Line::plain(login.scopes.join(" ")),
            Line::of(label, expires),
            Line::plain(if login.renewable { "yes" } else { "no" }),
        ]);
    }
    table.layout(width)
}

/// A login in JSON.
pub fn json(row: &Row) -> Value {
    let at = |at: u64| Timestamp::from_second(i64::try_from(at).ok()?).ok();
    let login = &row.login;
    json!({
        "servers": row.servers,
        "url": login.url,
        "issuer": login.issuer,
        "client_id": login.client_id,
        "scopes": login.scopes,
        "expires_at": login.expires_at.and_then(at).map(|at| at.to_string()),
        "renewable": login.renewable,
    })
}

/// What a login gave, in one line.
pub fn line(server: &str, login: &LoginReport, now: Duration) -> Line {
    let mut line = Line::of(Label::Good, "logged in to ")
        .then(Label::Name, server)
        .then(Label::Plain, format!(" at {}", login.issuer));
    if !login.scopes.is_empty() {
        line.push(Label::Plain, format!(" for {}", login.scopes.join(" ")));
    }
    let (_, expires) = expiry(login, now);
    let renewed = if login.renewable { ", renewed by itself" } else { "" };
    line.then(Label::Dim, format!(" (expires: {expires}{renewed})"))
}

fn expiry(login: &LoginReport, now: Duration) -> (Label, String) {
    match login.expires_at.map(Duration::from_secs) {
        None => (Label::Plain, "not said".to_owned()),
        Some(at) => match at.checked_sub(now) {
            Some(left) if !left.is_zero() => {
                let left = Duration::from_secs(left.as_secs());
                (Label::Plain, format!("in {}", show_duration(left)))
            }
            _ if login.renewable => (Label::Plain, "when used".to_owned()),
            _ => (Label::Warning, "expired".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Palette;

    fn row(expires_at: Option<u64>, renewable: bool) -> Row {
        let login = LoginReport {
            url: "https://mcp.example.com/mcp".into(),
            issuer: "https://login.example.com".into(),
            client_id: "abc".into(),
            scopes: vec!["read".into(), "write".into()],
            expires_at,
            renewable,
        };
        Row { servers: vec!["tasks".into()], login }
    }

    #[test]
    fn a_login_says_how_long_it_lasts() {
        let rows =
            [row(Some(1600), true), row(Some(900), true), row(Some(900), false), row(None, false)];
        let page = Palette::default().page(&table(&rows, Duration::from_secs(1000), None));
        let lasts = format!("in {}", show_duration(Duration::from_mins(10)));
        for (line, (expires, renewed)) in page.lines().skip(1).zip([
            (lasts.as_str(), "yes"),
            ("when used", "yes"),
            ("expired", "no"),
            ("not said", "no"),
        ]) {
            assert!(line.contains(expires) && line.trim_end().ends_with(renewed), "{page}");
        }
        assert_eq!(json(&rows[0])["expires_at"], "1970-01-01T00:26:40Z");
    }
}
