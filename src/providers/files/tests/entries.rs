//! Tests of which tools an entry gives, under which names.

use insta::assert_debug_snapshot;
use serde_json::json;

use super::super::kind;
use super::{inside, result_text, with};
use crate::config::environment::FixedEnvironment;
use crate::providers::harness::KindHarness;

fn tools(yaml: &str) -> Vec<String> {
    let harness = with(yaml, |_| {});
    assert_eq!(harness.messages(), [""; 0]);
    let line = |tool: crate::model::ToolDefinition| {
        let mut line = tool.name.full();
        for (mark, holds) in [
            (" asks", tool.requires_approval),
            (" writes", tool.annotations.read_only == Some(false)),
            (" destroys", tool.annotations.destructive == Some(true)),
        ] {
            if holds {
                line.push_str(mark);
            }
        }
        line
    };
    harness.definitions().into_iter().map(line).collect()
}

/// What is wrong with the entries, with hints.
fn diagnostics(yaml: &str) -> Vec<String> {
    let harness = with(yaml, |_| {});
    assert!(harness.definitions().is_empty());
    let line = |diagnostic: &crate::model::Diagnostic| {
        let place = diagnostic.location.as_ref().unwrap();
        let hint = diagnostic.hint.clone().unwrap_or_default();
        format!("{}:{}: {} ({hint})", place.line, place.column, diagnostic.message)
    };
    harness.diagnostics.iter().map(line).collect()
}

#[test]
fn reading_is_given_and_writing_has_to_be_said() {
    assert_eq!(
        tools("components: [{ name: p, type: files, root_dir: d }]"),
        ["p-read", "p-list", "p-search", "p-info"]
    );
    assert_debug_snapshot!(
        tools("components: [{ name: p, type: files, root_dir: d, access: write }]"), @r#"
    [
        "p-read",
        "p-list",
        "p-search",
        "p-info",
        "p-write asks writes destroys",
        "p-append asks writes",
        "p-edit asks writes destroys",
        "p-copy asks writes destroys",
        "p-move asks writes destroys",
        "p-delete asks writes destroys",
    ]
    "#);
}

#[test]
fn the_documents_toolkit_has_langchains_names() {
    assert_debug_snapshot!(tools(
        "toolkits: [{ name: files, toolkit: FileManagementToolkit, root_dir: ./d, \
         scope: PROJECT_ROOT, selected_tools: [read_file, list_directory, write_file], \
         requires_approval: [write_file] }]"
    ), @r#"
    [
        "files-read_file",
        "files-list_directory",
        "files-write_file asks writes destroys",
    ]
    "#);
    assert_eq!(
        tools("toolkits: [{ name: f, toolkit: FileManagementToolkit, root_dir: d }]"),
        [
            "f-read_file",
            "f-list_directory",
            "f-file_search",
            "f-write_file asks writes destroys",
            "f-copy_file asks writes destroys",
            "f-move_file asks writes destroys",
            "f-file_delete asks writes destroys",
        ],
        "all seven, and what changes something asks"
    );
    let read = "toolkits: [{ name: f, toolkit: FileManagementToolkit, root_dir: d, access: read }]";
    assert_eq!(tools(read), ["f-read_file", "f-list_directory", "f-file_search"]);
}

#[test]
fn one_tool_of_a_toolkit_takes_the_name_of_its_entry() {
    let yaml = "tools_config:\n  - tool_name: find\n    provider_type: 'langchain_toolkit'\n    \
                toolkit_class: 'FileManagementToolkit'\n    scope: 'AGENT_DATA'\n    \
                original_tool_name: 'file_system_search'\n    description: Finds documents\n";
    let harness = KindHarness::new(&kind(), yaml);
    assert_eq!(harness.messages(), [""; 0]);
    let tool = harness.definition("find");
    assert_eq!(tool.description.as_deref(), Some("Finds documents"));
    assert!(tool.input_schema["properties"].get("dir_path").is_some());
    assert!(tool.unavailable_reason.is_none(), "{:?}", tool.unavailable_reason);
    assert!(tool.touches[0].contains("state/agents/noproject-"), "{:?}", tool.touches);
}

#[tokio::test]
async fn agent_data_is_made_for_its_owner_alone_when_it_is_first_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let yaml = "components: [{ name: a, type: files, scope: AGENT_DATA_DIR, tools: [write] }]";
    let harness = KindHarness::prepared(&kind(), yaml, |_, _| {});
    let agents = harness.dir.path().join("home/state/agents");
    assert!(!agents.exists());
    let text = result_text(harness.call("a-write", json!({ "path": "n/x", "text": "hi" })).await);
    assert_eq!(text, "created 'n/x' with 2 bytes");
    let project = std::fs::read_dir(&agents).unwrap().next().unwrap().unwrap().path();
    for directory in [&agents, &project, &project.join("all")] {
        assert_eq!(std::fs::metadata(directory).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn no_is_the_users_word_about_asking() {
    assert_eq!(
        tools(
            "components: [{ name: p, type: files, root_dir: d, requires_approval: false, \
             tools: [write, { name: delete, requires_approval: true }] }]"
        ),
        ["p-write writes", "p-delete asks writes destroys"]
    );
    assert_eq!(
        tools(
            "components: [{ name: p, type: files, root_dir: d, requires_approval: false, \
             annotations: { destructiveHint: true, readOnlyHint: true }, tools: [write] }]"
        ),
        ["p-write writes destroys"]
    );
}

#[test]
fn what_is_wrong_is_told_at_once_and_in_place() {
    assert_debug_snapshot!(diagnostics(
        "components:\n  - { name: a, toolkit: FileMangementToolkit, access: rw, tools: [x], \
         max_file_bytes: 1GiB, scope: PROJEKT_ROOT }\n  - { name: b, type: files }\n  - { name: c, \
         type: files, root_dir: d, access: read, tools: [read, write_file] }\n  - { name: e, \
         type: files, scope: session }\n  - { name: f, type: files, scope: ELSEWHERE }\n"
    ), @r#"
    [
        "2:55: unknown access 'rw'; expected one of read, write ()",
        "2:87: expected a size from 1 to 16.0 MiB, such as 64KiB, found text ()",
        "2:25: unknown toolkit 'FileMangementToolkit' (did you mean 'FileManagementToolkit'?)",
        "2:100: unknown scope 'PROJEKT_ROOT' (did you mean 'PROJECT_ROOT'?)",
        "2:67: there is no tool 'x' to select (the tools are read_file, list_directory, file_search, write_file, copy_file, move_file, file_delete)",
        "3:5: no directory is configured (add 'root_dir: ./data', or 'scope: PROJECT_ROOT')",
        "4:50: 'write' is selected, but 'access' is read (set 'access: write', or leave the tool out)",
        "5:5: no directory is configured (add 'root_dir: ./data', or 'scope: PROJECT_ROOT')",
        "6:36: unknown scope 'ELSEWHERE' (the names are AGENT_DATA, AGENT_DATA_DIR, PROJECT_ROOT)",
    ]
    "#);
}

#[test]
fn a_directory_that_is_missing_makes_its_tools_unavailable() {
    let yaml = "components: [{ name: a, type: files, root_dir: nowhere }, { name: b, type: files, \
                root_dir: nowhere, create: true }, { name: c, type: files, root_dir: tools.yaml }]";
    let harness = with(yaml, |_| {});
    let why = |name: &str| {
        let error = harness.definition(name).unavailable_reason?;
        Some(error.message().replace(harness.dir.path().to_str().unwrap(), ""))
    };
    assert_eq!(why("a-read").unwrap(), "the directory /nowhere does not exist");
    assert_eq!(why("b-read"), None);
    assert!(harness.definition("b-read").touches[1].starts_with("creates "));
    assert_eq!(why("c-read").unwrap(), "/tools.yaml is not a directory");
}

#[test]
fn a_named_directory_is_one_of_the_files_own_or_a_predefined_one() {
    let yaml = "scopes: { DATA: ./d }\ncomponents: [{ name: a, type: files, scope: DATA }, \
                { name: b, type: files, scope: PROJECT_ROOT }]";
    let harness = with(yaml, |_| {});
    let real = inside(&harness).canonicalize().unwrap();
    let touches = |name| harness.definition(name).touches[0].clone();
    assert_eq!(touches("a-read"), format!("reads files below {}", real.display()));
    let parent = real.parent().unwrap().display().to_string();
    assert_eq!(touches("b-read"), format!("reads files below {parent}"));
}

#[test]
fn only_reading_below_the_project_needs_no_consent() {
    use std::collections::BTreeMap;

    use crate::config::consent::{EntryEffect, EntrySite};
    use crate::config::node::ConfigNode;
    let text = "scopes: { OUT: /usr }\ncomponents: [{ name: a, type: files, root_dir: d }, { name: b, \
         type: files, root_dir: d/link }, { name: c, type: files, root_dir: d, access: write }, \
         { name: e, type: files, scope: OUT, tools: [read, \
         { original_tool_name: delete, name: rm }] }, { name: f, type: files, scope: AGENT_DATA }, \
         { name: g, type: files, root_dir: '${X}' }]";
    let harness =
        with(text, |inside| std::os::unix::fs::symlink("/usr", inside.join("link")).unwrap());
    let base_dir = harness.dir.path().canonicalize().unwrap();
    let source = crate::config::node::SourceText::new("tools.yaml", text);
    let root = crate::config::parse::parse(&source, text).unwrap();
    let environment = FixedEnvironment::default();
    let scopes = BTreeMap::from([("OUT".to_owned(), "/usr".to_owned())]);
    let components = root.get("components").map(ConfigNode::as_list).unwrap().unwrap();
    let effects: Vec<Vec<EntryEffect>> = components
        .iter()
        .map(|entry| {
            let site = EntrySite::new(&base_dir, &base_dir, &scopes, None, &environment);
            (kind().words.effects)(entry, &site)
        })
        .collect();
    let inside = base_dir.join("d").display().to_string();
    assert_eq!(
        effects,
        [
            vec![],
            vec![EntryEffect::Reads("/usr".to_owned())],
            vec![EntryEffect::Writes(inside)],
            vec![EntryEffect::Writes("/usr".to_owned())],
            vec![EntryEffect::Reads("toolhost's directory for agents' data".to_owned())],
            vec![EntryEffect::Reads("${X}".to_owned())],
        ]
    );
}
