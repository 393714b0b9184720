//! `-o` offers, for each command, only what it prints.

use crate::support::Sandbox;

#[test]
fn help_names_the_formats_of_a_command_and_others_are_refused() {
    let room = Sandbox::new();
    room.file("t.yaml", "tools: [{ name: echo, module: builtin.echo }]\n");
    for (words, formats, other) in [
        (&["list"][..], "text, table, json, yaml, names", "raw"),
        (&["call", "echo"], "text, table, json, yaml, raw", "names"),
        (&["history", "show", "last"], "text, json, yaml]", "names"),
        (&["history"], "text, table, json, yaml, names", "csv"),
        (&["bench", "echo"], "text, json, yaml, csv, markdown", "raw"),
        (&["config", "check"], "text, json, yaml]", "table"),
        (&["trust", "list"], "text, json, yaml, names]", "raw"),
        (&["resources", "read", "x:y"], "text, json, yaml, raw]", "csv"),
    ] {
        let help = room.toolhost([words, &["--help"]].concat()).check();
        let page = help.exits(0).out();
        let page: Vec<&str> = page.split_whitespace().collect();
        assert!(page.join(" ").contains(formats), "{words:?}\n{help}");
        let refused = room.toolhost([words, &["-o", other]].concat()).check();
        refused.exits(2).says(&["invalid value", formats.trim_end_matches(']')]);
        // Before the command every format is a word; the command still says no.
        let before = room.toolhost([&["--tools", "t.yaml", "-o", other], words].concat()).check();
        before.exits(2);
    }
    let both = room.toolhost(["--tools", "t.yaml", "list", "-o", "names"]).check();
    assert_eq!(both.exits(0).out(), "echo\n");
    let first = room.toolhost(["--tools", "t.yaml", "-o", "names", "list"]).check();
    assert_eq!(first.exits(0).out(), "echo\n");
    let shown =
        room.toolhost(["--tools", "t.yaml", "bench", "echo", "message=a", "-n", "1", "-o", "md"]);
    shown.check().exits(0);
}
