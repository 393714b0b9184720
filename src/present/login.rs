//! `auth list` and `auth login`.

use std::time::Duration;

use crate::model::LoginReport;
use crate::present::{Line, Page, Role, Table, TableColumn};
use crate::util::units::show_duration;

pub struct LoginRow {
    pub servers: Vec<String>,
    pub login: LoginReport,
}

/// The logins as a table; `now` is the time since the Unix epoch.
pub fn table(rows: &[LoginRow], now: Duration, width: Option<usize>) -> Page {
    let mut table = Table::new([
        TableColumn::new("SERVER").shrinks_to(12),
        TableColumn::new("ADDRESS").shrinks_to(20).droppable(1),
        TableColumn::new("ISSUER").shrinks_to(20),
        TableColumn::new("SCOPES").shrinks_to(12).droppable(2),
        TableColumn::new("EXPIRES"),
        TableColumn::new("RENEWED"),
    ]);
    for LoginRow { servers, login } in rows {
        let (label, expires) = expiry(login, now);
        table.row([
            Line::styled(Role::Name, servers.join(", ")),
            Line::plain(&login.url),
            Line::plain(&login.issuer),
            Line::plain(login.scopes.join(" ")),
            Line::styled(label, expires),
            Line::plain(if login.renewable { "yes" } else { "no" }),
        ]);
    }
    table.layout(width)
}

pub fn line(server: &str, login: &LoginReport, now: Duration) -> Line {
    let mut line = Line::styled(Role::Success, "logged in to ")
        .then(Role::Name, server)
        .then(Role::Plain, format!(" at {}", login.issuer));
    if !login.scopes.is_empty() {
        line.push(Role::Plain, format!(" for {}", login.scopes.join(" ")));
    }
    let (_, expires) = expiry(login, now);
    let renewed = if login.renewable { ", renewed automatically" } else { "" };
    line.then(Role::Dim, format!(" (expires: {expires}{renewed})"))
}

fn expiry(login: &LoginReport, now: Duration) -> (Role, String) {
    match login.expires_at.map(Duration::from_secs) {
        None => (Role::Plain, "unknown".to_owned()),
        Some(at) => match at.checked_sub(now) {
            Some(left) if !left.is_zero() => {
                let left = Duration::from_secs(left.as_secs());
                (Role::Plain, format!("in {}", show_duration(left)))
            }
            _ if login.renewable => (Role::Plain, "when used".to_owned()),
            _ => (Role::Warning, "expired".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::auth::LoginJson;
    use crate::present::page::LineRenderer;

    fn row(expires_at: Option<u64>, renewable: bool) -> LoginRow {
        let login = LoginReport {
            url: "https://mcp.example.com/mcp".into(),
            issuer: "https://login.example.com".into(),
            client_id: "abc".into(),
            scopes: vec!["read".into(), "write".into()],
            expires_at,
            renewable,
        };
        LoginRow { servers: vec!["tasks".into()], login }
    }

    #[test]
    fn a_login_says_how_long_it_lasts() {
        let rows =
            [row(Some(1600), true), row(Some(900), true), row(Some(900), false), row(None, false)];
        let page = LineRenderer::default().page(&table(&rows, Duration::from_secs(1000), None));
        let lasts = format!("in {}", show_duration(Duration::from_mins(10)));
        for (line, (expires, renewed)) in page.lines().skip(1).zip([
            (lasts.as_str(), "yes"),
            ("when used", "yes"),
            ("expired", "no"),
            ("unknown", "no"),
        ]) {
            assert!(line.contains(expires) && line.trim_end().ends_with(renewed), "{page}");
        }
        let login = LoginJson::from((&rows[0].servers[..], &rows[0].login));
        assert_eq!(serde_json::to_value(login).unwrap()["expires_at"], "1970-01-01T00:26:40Z");
    }
}
