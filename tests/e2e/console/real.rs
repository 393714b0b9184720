//! The console on servers that other people wrote: one on Node.js, one in Python.
//!
//! `TOOLHOST_EVERYTHING` names the script of `@modelcontextprotocol/server-everything`, and
//! `TOOLHOST_TIME` a Python that has `mcp_server_time`; without them the test says so and does nothing.

use crate::support::{Pty, Sandbox};

const F5: &str = "\u{1b}[15~";

#[test]
#[ignore = "needs TOOLHOST_EVERYTHING and TOOLHOST_TIME, servers of other people"]
fn servers_of_others_are_called_and_answered_in_one_screen() {
    let named = |name| std::env::var_os(name).map(|path| path.into_string().unwrap());
    let (Some(every), Some(time)) = (named("TOOLHOST_EVERYTHING"), named("TOOLHOST_TIME")) else {
        crate::support::left_out("TOOLHOST_EVERYTHING and TOOLHOST_TIME name no servers");
        return;
    };
    let room = Sandbox::new();
    room.file(
        "mcp.yaml",
        &format!(
            "mcp_servers:\n  every: {{ command: node, args: ['{every}'] }}\n  \
             clock: {{ command: '{time}', args: [-m, mcp_server_time] }}\n"
        ),
    );
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("● 2 servers").expect_shown("get-sum").expect_shown("convert_time");
    pty.type_keys("/gcurt").expect_shown("❯ clock-get_current_time").type_keys("\r");
    pty.expect_shown("Arguments  clock-get").type_keys("Europe/Berlin").type_keys(F5);
    pty.expect_shown("\"timezone\": \"Europe/Berlin\"").expect_shown("schema ok");
    pty.type_keys("\u{1b}").expect_gone("Arguments");

    // A form of many fields, asked in the middle of a call.
    pty.type_keys("/\u{15}trigger-elicitation-req").expect_shown("❯ every-trigger");
    pty.type_keys("\r").expect_shown("Arguments  every-trigger").type_keys(F5);
    pty.expect_shown("every asks").expect_shown("Esc later").type_keys("\r");
    pty.expect_shown("^D decline").type_keys("Ada").expect_shown(r#"sends {"name":"Ada""#);
    pty.type_keys(F5).expect_shown("answered every").expect_shown("- Name: Ada");
    pty.type_keys("\u{1b}").expect_gone("Arguments");

    pty.type_keys("7").expect_shown("every-simple-prompt").type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
}
