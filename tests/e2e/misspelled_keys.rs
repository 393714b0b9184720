//! Keys that nobody knows name the near one, also where the misspelled key decided what an entry is.

use crate::support::{Finished, Sandbox};

/// Expects a check that failed, and what it printed.
fn told(checked: &Finished, words: &[&str]) {
    let out = checked.exits(9).out();
    for words in words {
        assert!(out.contains(words), "{words}\n{checked}");
    }
}

#[test]
fn a_misspelled_key_names_the_near_one_with_its_place() {
    let room = Sandbox::new();
    room.file(
        "t.yaml",
        "tools:\n  - { name: a, comand: [ls] }\n  - { name: b, modul: builtin.echo }\n  - { name: c, module: builtin.echo, descripton: x }\n",
    )
    .file(
        "m.yaml",
        "mcp_servers:\n  a: { comand: ls }\n  b: { ulr: 'http://127.0.0.1:9' }\n  c: { command: ls, timeot: 3s }\n  d: { command: ls, roots: [{ uri: 'file:///srv', nmae: x }] }\n",
    );
    let tools = room.toolhost(["--tools", "t.yaml", "config", "check"]).check();
    told(
        &tools,
        &[
            "t.yaml:2:16: error: the kind of this tool is missing; unknown key 'comand'",
            "did you mean 'command'?",
            "t.yaml:3:16: error: the kind of this tool is missing; unknown key 'modul'",
            "did you mean 'module'?",
            "t.yaml:4:38: warning: unknown key 'descripton'",
            "did you mean 'description'?",
        ],
    );
    let servers = room.toolhost(["--mcp", "m.yaml", "config", "check"]).check();
    told(
        &servers,
        &[
            "m.yaml:2:8: error: this server has neither a command nor a URL; unknown key 'comand'",
            "did you mean 'command'?",
            "m.yaml:3:8: error: this server has neither a command nor a URL; unknown key 'ulr'",
            "did you mean 'url'?",
            "m.yaml:4:21: warning: unknown key 'timeot'",
            "did you mean 'timeout'?",
            "m.yaml:5:51: warning: unknown key 'nmae'",
            "did you mean 'name'?",
        ],
    );
}

#[test]
fn a_toolkit_of_others_is_refused_with_what_to_use_instead() {
    let room = Sandbox::new();
    room.file(
        "t.yaml",
        "toolkits:\n  - { name: mail, provider_type: langchain_toolkit, toolkit_class: GmailToolkit }\n  - { name: sql, toolkit: SQLDatabaseToolkit, root_dir: . }\n",
    );
    let checked = room.toolhost(["--tools", "t.yaml", "config", "check"]).check();
    told(
        &checked,
        &[
            "t.yaml:2:68: error: unknown toolkit 'GmailToolkit'",
            "MCP server in mcp.yaml",
            "t.yaml:3:27: error: unknown toolkit 'SQLDatabaseToolkit'",
            "storage_type: postgresql",
        ],
    );
}

#[test]
fn a_keyring_without_the_feature_says_what_is_missing_and_how_to_get_it() {
    let room = Sandbox::new();
    room.file("t.yaml", "tools:\n  - { name: a, command: [env], env: { A: '${keyring:NAME}' } }\n");
    let checked = room.toolhost(["--tools", "t.yaml", "config", "check"]).check();
    told(&checked, &["${keyring:NAME}", "t.yaml:2:"]);
    if !cfg!(feature = "keyring") {
        told(&checked, &["without the feature 'keyring'", "--features keyring"]);
    }
}
