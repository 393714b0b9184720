//! Background hosts as a table.

use crate::present::{Line, Page, Role, Table, TableColumn};
use crate::serve::background::protocol::HostStatus;
use crate::util::units::{show_size, show_span};

pub fn table(hosts: &[HostStatus], width: Option<usize>) -> Page {
    let mut table = Table::new([
        TableColumn::new("DIRECTORY").shrinks_last_to(12),
        TableColumn::new("PID").right(),
        TableColumn::new("UP").right().droppable(2),
        TableColumn::new("SERVERS").right(),
        TableColumn::new("CALLS").right(),
        TableColumn::new("MEMORY").right().droppable(3),
        TableColumn::new("ENDS IN").right().droppable(1),
    ]);
    let plain = |text: String| Line::plain(text);
    for host in hosts {
        let ready = host.servers.iter().filter(|server| server.state == "ready").count();
        let of_sessions: usize = host.servers.iter().filter_map(|server| server.connections).sum();
        let more = if of_sessions > 0 { format!(" ({of_sessions} own)") } else { String::new() };
        table.row([
            Line::styled(Role::Name, host.directory.display().to_string()),
            plain(host.pid.to_string()),
            plain(show_span(host.uptime)),
            plain(format!("{ready}/{}{more}", host.servers.len())),
            plain(host.calls.to_string()),
            plain(host.memory.map(show_size).unwrap_or_default()),
            plain(host.idle_left.map_or_else(|| "in use".to_owned(), show_span)),
        ]);
    }
    table.layout(width)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::present::page::LineRenderer;

    #[test]
    fn a_time_that_goes_on_is_told_as_a_person_tells_it() {
        for (micros, shown) in [
            (6_140, "under 1 s"),
            (6_140_000, "6 s"),
            (150_000_000, "2 min"),
            (7_200_000_000, "2 h"),
        ] {
            let uptime = Duration::from_micros(micros);
            let host = HostStatus {
                pid: 7,
                version: String::new(),
                directory: PathBuf::from("/p"),
                uptime,
                servers: Vec::new(),
                calls: 0,
                running: 0,
                memory: None,
                idle_limit: Duration::ZERO,
                idle_left: Some(uptime),
            };
            let page = LineRenderer::default().page(&table(&[host], None));
            let row = page.lines().last().unwrap();
            assert_eq!(row.matches(&format!(" {shown}")).count(), 2, "{page}");
            assert!(!row.contains("ms"), "{page}");
        }
    }
}
