//! Tests of which changes a pin detects, and which it ignores.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::{Catalogue, LocalFailure, ServerListing};
use crate::config::spec::DriftPolicy;
use crate::model::{
    EntryOrigin, Error, Layer, Origin, PinState, SourceLocation, ToolDefinition, ToolName,
    ToolSchema, ToolSource, ToolStatus,
};

const FILE: &str = "/p/mcp.yaml";

fn remote(name: &str, description: &str) -> ToolDefinition {
    let origin = Origin::Server("s".to_owned());
    let mut tool = ToolDefinition::new(ToolName::of("s", name), ToolSource::Mcp, "mcp", origin);
    tool.description = Some(description.to_owned());
    tool
}

fn local(file: &str, touches: &str) -> ToolDefinition {
    let location =
        SourceLocation { file: Arc::new(PathBuf::from(file)), line: 1, column: 1, text: "".into() };
    let name = ToolName::plain("log");
    let mut tool =
        ToolDefinition::new(name, ToolSource::Internal, "command", Origin::File(location));
    tool.touches = vec![touches.to_owned()];
    tool
}

fn known(endpoint: &str, drift: DriftPolicy) -> Arc<PinContext> {
    let entry = PinnedEntry::of(&EntryOrigin::of(Layer::Project, "/p"), &str::to_owned);
    let owner =
        ConfiguredServer { file: FILE.to_owned(), endpoint: endpoint.to_owned(), entry, drift };
    Arc::new(PinContext {
        servers: BTreeMap::from([("s".to_owned(), owner)]),
        files: HashMap::from([
            (PathBuf::from("/p/tools.yaml"), "/p/tools.yaml".to_owned()),
            (PathBuf::from("/q/tools.yaml"), "/q/tools.yaml".to_owned()),
        ]),
        own_files: BTreeSet::new(),
    })
}

fn plain(text: &str) -> String {
    text.to_owned()
}

/// Pins of these tools, as `pin` writes them.
fn content(tools: &[ToolDefinition], instructions: Option<&str>) -> PinFileContent {
    let mut content = PinFileContent::default();
    let group = content.group_mut(Some("s"), Some(FILE));
    group.endpoint = Some("stdio server".to_owned());
    group.instructions = instructions.map(|text| content::PinnedText::of(text, &plain));
    for tool in tools {
        group.tools.insert(tool.name.tool().to_owned(), Pin::of(tool, &plain));
    }
    content
}

fn pins(drift: DriftPolicy) -> Pins {
    Pins::new(known("stdio server", drift), content(&[remote("a", "reads")], Some("Read first.")))
}

fn parts(differences: Option<&[DefinitionChange]>) -> Vec<&'static str> {
    match differences {
        None => vec!["new"],
        Some([]) => vec!["same"],
        Some(changes) => changes.iter().map(|change| change.part).collect(),
    }
}

#[test]
fn every_way_to_be_something_else_is_seen() {
    let pins = pins(DriftPolicy::Block);
    let judge =
        |tool: &ToolDefinition, instructions| parts(pins.compare(tool, instructions).as_deref());
    let instructions = Some("Read first.");
    assert_eq!(judge(&remote("a", "reads"), instructions), ["same"]);
    assert_eq!(judge(&remote("a", "writes"), instructions), ["description"]);
    assert_eq!(judge(&remote("b", "reads"), instructions), ["new"]);
    assert_eq!(judge(&remote("a", "reads"), Some("Wipe first.")), ["instructions"]);
    assert_eq!(judge(&remote("a", "reads"), None), ["instructions"]);
    let moved = Pins::new(
        known("stdio other", DriftPolicy::Block),
        content(&[remote("a", "reads")], instructions),
    );
    assert_eq!(parts(moved.compare(&remote("a", "reads"), instructions).as_deref()), ["endpoint"]);
    let mut more = remote("a", "reads");
    more.annotations.read_only = Some(true);
    more.input_schema = ToolSchema::from(json!({ "type": "object", "required": ["x"] }));
    assert_eq!(judge(&more, instructions), ["inputSchema", "annotations"]);
}

#[test]
fn pins_of_another_file_are_of_another_server() {
    let mut content = content(&[remote("a", "reads")], None);
    content.groups[0].file = Some("/elsewhere/mcp.yaml".to_owned());
    let pins = Pins::new(known("stdio server", DriftPolicy::Block), content.clone());
    assert!(pins.is_empty());
    content.groups[0].file = None;
    assert!(!Pins::new(known("stdio server", DriftPolicy::Block), content).is_empty());
}

fn entry(layer: Layer, directory: &str, written: &str) -> Arc<EntryOrigin> {
    let (directory, written) = (directory.into(), written.to_owned());
    Arc::new(EntryOrigin { layer, directory, declaration: written, command_end: None })
}

fn pinned(entry: &EntryOrigin) -> PinnedEntry {
    PinnedEntry::of(entry, &plain)
}

#[test]
fn a_projects_entry_that_took_the_name_of_a_pinned_server_is_another_server() {
    let mut content = content(&[remote("a", "reads")], None);
    content.groups[0].file = Some("/home/me/mcp.yaml".to_owned());
    content.groups[0].entry = Some(pinned(&entry(Layer::User, "/home/me", "server")));
    let judge = |content: &PinFileContent| {
        let pins = Pins::new(known("stdio server", DriftPolicy::Block), content.clone());
        parts(pins.compare(&remote("a", "reads"), None).as_deref())
    };
    assert_eq!(judge(&content), ["entry"]);
    // In a file that is named for this run the name was taken on purpose.
    let mut context = PinContext::clone(&known("stdio server", DriftPolicy::Block));
    for owner in context.servers.values_mut() {
        owner.entry = pinned(&entry(Layer::Flag, "/p", ""));
    }
    let pins = Pins::new(Arc::new(context), content.clone());
    assert_eq!(parts(pins.compare(&remote("a", "reads"), None).as_deref()), ["new"]);
    // One of another project never was meant.
    content.groups[0].entry = Some(pinned(&entry(Layer::Project, "/home/me", "server")));
    assert_eq!(judge(&content), ["new"]);
    // Before entries were kept, only the file told whose it was.
    content.groups[0].entry = None;
    let mut context = PinContext::clone(&known("stdio other", DriftPolicy::Block));
    context.own_files.insert("/home/me/mcp.yaml".to_owned());
    let pins = Pins::new(Arc::new(context), content.clone());
    assert_eq!(parts(pins.compare(&remote("a", "reads"), None).as_deref()), ["endpoint"]);
    // What was accepted for the project's own file counts from then on.
    let here = content.group_mut(Some("s"), Some(FILE));
    here.endpoint = Some("stdio server".to_owned());
    here.tools.insert("a".to_owned(), Pin::of(&remote("a", "reads"), &plain));
    content.groups[0].entry = Some(pinned(&entry(Layer::User, "/home/me", "server")));
    assert_eq!(judge(&content), ["same"]);
    content.groups.reverse();
    assert_eq!(judge(&content), ["same"]);
}

#[test]
fn a_server_that_is_written_otherwise_is_another_one_though_it_starts_the_same() {
    let mut content = content(&[remote("a", "reads")], None);
    let judge = |content: &PinFileContent| {
        let pins = Pins::new(known("stdio server", DriftPolicy::Block), content.clone());
        parts(pins.compare(&remote("a", "reads"), None).as_deref())
    };
    for (written, directory, comparison) in
        [("", "/p", "same"), ("${OTHER}", "/p", "entry"), ("", "/q", "entry")]
    {
        let of = entry(Layer::Project, directory, written);
        content.groups[0].entry = Some(pinned(&of));
        assert_eq!(judge(&content), [comparison], "{written} {directory}");
    }
    // A file of pins for every machine says nothing about places.
    content.groups[0].entry = Some(pinned(&entry(Layer::Project, "/q", "")).portable());
    assert_eq!(judge(&content), ["same"]);
    // How the file was found does not matter.
    content.groups[0].entry = Some(pinned(&entry(Layer::Flag, "/p", "")));
    assert_eq!(judge(&content), ["same"]);
}

#[test]
fn a_projects_tool_that_took_the_name_of_a_pinned_one_is_another_tool() {
    let of = |file: &str, layer, directory: &str, written: &str| {
        let mut tool = local(file, "starts /bin/log");
        tool.entry = Some(entry(layer, directory, written));
        tool
    };
    let users = of("/home/me/tools.yaml", Layer::User, "/home/me", "log");
    let mut content = PinFileContent::default();
    let group = content.group_mut(None, Some("/home/me/tools.yaml"));
    group.tools.insert("log".to_owned(), Pin::of(&users, &plain));
    let mut context = PinContext::clone(&known("stdio server", DriftPolicy::Block));
    context.files.insert("/home/me/tools.yaml".into(), "/home/me/tools.yaml".to_owned());
    let pins = Pins::new(Arc::new(context), content);
    let judge = |tool: &ToolDefinition| parts(pins.compare(tool, None).as_deref());
    assert_eq!(judge(&users), ["same"]);
    assert_eq!(judge(&of("/home/me/tools.yaml", Layer::User, "/home/me", "${LOG}")), ["entry"]);
    assert_eq!(judge(&of("/p/tools.yaml", Layer::Project, "/p", "log")), ["entry"]);
    assert_eq!(judge(&of("/p/tools.yaml", Layer::Flag, "/p", "log")), ["new"]);
}

#[test]
fn an_internal_tool_is_its_definition_and_what_it_starts_wherever_its_project_stands() {
    let mut content = PinFileContent::default();
    let pinned = local("/p/tools.yaml", "starts /p/bin/log");
    content.group_mut(None, None).tools.insert("log".to_owned(), Pin::of(&pinned, &plain));
    let pins = Pins::new(known("stdio server", DriftPolicy::Block), content.clone());
    let judge = |tool: &ToolDefinition| parts(pins.compare(tool, None).as_deref());
    assert_eq!(judge(&pinned), ["same"]);
    assert_eq!(judge(&local("/q/tools.yaml", "starts /q/bin/log")), ["same"]);
    assert_eq!(judge(&local("/p/tools.yaml", "starts /bin/sh")), ["touches"]);
    // The root is no directory that moves.
    assert_eq!(content::touches(&local("/tools.yaml", "starts /bin/sh")), ["starts /bin/sh"]);

    content.groups[0].file = Some("/p/tools.yaml".to_owned());
    let pins = Pins::new(known("stdio server", DriftPolicy::Block), content);
    assert_eq!(
        parts(pins.compare(&local("/q/tools.yaml", "starts /bin/sh"), None).as_deref()),
        ["new"]
    );
}

#[test]
fn a_definition_that_was_not_kept_is_told_by_its_hash() {
    let large = remote("a", &"x".repeat(300 << 10));
    let content = content(&[large], None);
    assert!(content.groups[0].tools["a"].definition.is_none());
    let pins = Pins::new(known("stdio server", DriftPolicy::Block), content);
    assert_eq!(parts(pins.compare(&remote("a", "y"), None).as_deref()), ["fingerprint"]);
}

#[test]
fn a_changed_tool_is_marked_and_its_entry_decides_about_calls() {
    for (drift, refused, warnings) in [
        (DriftPolicy::Block, true, 0),
        (DriftPolicy::Warn, false, 4),
        (DriftPolicy::Allow, false, 0),
    ] {
        let pins = pins(drift);
        let tools = [remote("a", "deletes"), remote("b", "new"), remote("a", "deletes")];
        let mut tools = tools.map(Arc::new);
        Arc::make_mut(&mut tools[2]).mark_unavailable(Error::unreachable("gone"));
        pins.mark_tools(&mut tools, Some("Read first."));
        assert_eq!(tools[0].status, ToolStatus::Changed);
        assert_eq!(tools[1].status, ToolStatus::Live);
        assert_eq!(tools[2].status, ToolStatus::Unavailable);
        assert!(matches!(tools[1].pin_state, PinState::NotPinned));
        match pins.check_call(&tools[0]) {
            Err(error) => {
                assert!(refused);
                assert_eq!(error.kind().exit_code(), 6);
                assert_eq!(error.details(), ["description:", "  -reads", "  +deletes"]);
                assert!(error.hint().unwrap().contains("toolhost pin s-a"));
            }
            Ok(lines) => assert_eq!((refused, lines.len()), (false, warnings)),
        }
        assert_eq!(pins.check_call(&tools[1]).unwrap(), [""; 0]);
    }
}

#[test]
fn a_listing_is_compared_whole() {
    let listed = [remote("a", "changed"), remote("c", "new")].map(Arc::new);
    let old = [remote("a", "reads"), remote("b", "goes"), remote("d", "goes too")];
    let pins = Pins::new(known("stdio server", DriftPolicy::Block), content(&old, None));
    let listing = |error: Option<Error>, partial| Catalogue {
        tools: if error.is_some() { Vec::new() } else { listed.to_vec() },
        servers: vec![ServerListing { name: "s".to_owned(), error, is_partial: partial }],
        ..Catalogue::default()
    };
    let count = |catalogue: &Catalogue| {
        let report = PinReport::new(&pins, catalogue, &|_| None);
        [
            PinReportState::Changed,
            PinReportState::Missing,
            PinReportState::New,
            PinReportState::Unchecked,
        ]
        .map(|s| report.count(s))
    };
    assert_eq!(count(&listing(None, false)), [1, 2, 1, 0]);
    assert_eq!(count(&listing(None, true)), [1, 0, 1, 2]);
    assert_eq!(count(&listing(Some(Error::unreachable("exited")), false)), [0, 0, 0, 3]);
    let report = PinReport::new(&pins, &listing(None, false), &|_| Some("Wipe first.".to_owned()));
    assert_eq!(report.servers.len(), 1);
    let changes: Vec<_> = report.tools[0].changes.iter().map(|change| change.part).collect();
    assert_eq!(changes, ["description"], "the server's change is told once");
}

#[test]
fn an_internal_tool_that_is_not_listed_is_gone_unless_a_listing_failed() {
    let tool = local("/p/tools.yaml", "starts /bin/log");
    let mut content = PinFileContent::default();
    for (file, name) in [
        (Some("/p/tools.yaml"), "log"),
        (Some("/p/tools.yaml"), "gone"),
        (Some("/of/another/project.yaml"), "elsewhere"),
        (None, "anywhere"),
    ] {
        content.group_mut(None, file).tools.insert(name.to_owned(), Pin::of(&tool, &plain));
    }
    let pins = Pins::new(known("stdio server", DriftPolicy::Block), content);
    let error = Error::unreachable("exited");
    for (failures, state) in [
        (Vec::new(), PinReportState::Missing),
        (vec![LocalFailure { kind: "python".into(), error }], PinReportState::Unchecked),
    ] {
        let tools = vec![Arc::new(tool.clone())];
        let report =
            PinReport::new(&pins, &Catalogue { tools, failures, ..Catalogue::default() }, &|_| {
                None
            });
        let states: Vec<_> =
            report.tools.iter().map(|tool| (tool.name.as_str(), tool.state)).collect();
        let log = ("log", PinReportState::Same);
        assert_eq!(states, [log, ("anywhere", state), ("gone", state)]);
    }
}

#[test]
fn what_is_kept_to_show_a_difference_has_a_bound() {
    const MOST: usize = 256 << 10;
    let text = |length: usize| content::PinnedText::of(&"x".repeat(length), &plain).text;
    let definition = |length: usize| Pin::of(&remote("a", &"x".repeat(length)), &plain).definition;
    let frame = definition(1).unwrap().get().len() - 1;
    for (length, is_kept) in [(MOST, true), (MOST + 1, false)] {
        assert_eq!(text(length).is_some(), is_kept, "{length}");
        assert_eq!(definition(length - frame).is_some(), is_kept, "{length}");
    }
}

#[test]
fn a_file_that_pins_no_tool_is_empty() {
    let mut content = PinFileContent::default();
    assert!(content.is_empty());
    content.group_mut(Some("s"), None);
    assert!(content.is_empty());
    content
        .group_mut(Some("s"), None)
        .tools
        .insert("a".to_owned(), Pin::of(&remote("a", ""), &plain));
    assert!(!content.is_empty() && content.groups.len() == 1);
}

proptest! {
    #[test]
    fn a_pin_holds_for_what_was_pinned_and_for_nothing_else(
        one in any::<String>(), other in any::<String>(), words in proptest::option::of(any::<String>()),
    ) {
        let tool = remote("a", &one);
        let pins = Pins::new(known("stdio server", DriftPolicy::Block), content(std::slice::from_ref(&tool), words.as_deref()));
        prop_assert_eq!(pins.compare(&tool, words.as_deref()), Some(Vec::new()));
        let same = pins.compare(&remote("a", &other), words.as_deref()) == Some(Vec::new());
        prop_assert_eq!(same, one == other);
    }
}
