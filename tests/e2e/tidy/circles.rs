//! Circles between the modules of a room.
//!
//! Owns: the graph of a room's direct children and what of it leads back to where it began. A path
//! to a re-export counts as one to the module that the re-export comes from.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::Source;

/// Who imports whom among the children of a room, with one place for each.
type Graph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// The circles of a room, each a line for every import that is part of it.
pub(super) fn circles(room: &str, sources: &[Source]) -> Vec<String> {
    let graph = graph(room, sources);
    let mut found = Vec::new();
    for (from, imports) in &graph {
        for (to, place) in imports {
            if reaches(&graph, to, from) {
                found.push(format!("{room}: {from} -> {to} ({place})"));
            }
        }
    }
    found
}

fn graph<'a>(room: &str, sources: &'a [Source]) -> Graph<'a> {
    let own: Vec<&Source> = sources.iter().filter(|source| source.room() == room).collect();
    let exports: BTreeMap<&str, &str> = own
        .iter()
        .filter(|source| source.module.len() == 1)
        .flat_map(|root| &root.names.exports)
        .filter_map(|export| Some((export.new.as_str(), export.name.segments.get(1)?.as_str())))
        .collect();
    let mut graph = Graph::new();
    for source in own {
        let Some(from) = source.module.get(1) else { continue };
        for name in source.names.paths.iter().filter(|name| name.is_own) {
            let [first, second, ..] = name.segments.as_slice() else { continue };
            let to = exports.get(second.as_str()).copied().unwrap_or(second);
            if first == room && to != from && to.starts_with(char::is_lowercase) {
                let place = || format!("src/{}:{}", source.path, name.line);
                graph.entry(from).or_default().entry(to).or_insert_with(place);
            }
        }
    }
    graph
}

fn reaches<'a>(graph: &Graph<'a>, from: &'a str, to: &str) -> bool {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            left.extend(graph.get(module).into_iter().flat_map(|imports| imports.keys()));
        }
    }
    false
}
