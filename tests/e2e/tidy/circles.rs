//! Circles between the modules of a room, and between those of each module in it.
//!
//! Owns: the graph of a module's direct children and what of it leads back to where it began. A path
//! to a re-export counts as one to the module that the re-export comes from.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::Source;

/// Who imports whom among the children of a module, with one place for each.
type Graph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// The circles among the children of every module, each a line for every import that is part of it.
pub(super) fn circles(sources: &[Source]) -> Vec<String> {
    let parents = sources.iter().filter_map(|source| Some(source.module.split_last()?.1));
    let parents: BTreeSet<&[String]> = parents.filter(|parent| !parent.is_empty()).collect();
    let mut found = Vec::new();
    for parent in parents {
        let graph = graph(parent, sources);
        for (from, imports) in &graph {
            for (to, place) in imports {
                if reaches(&graph, to, from) {
                    found.push(format!("{}: {from} -> {to} ({place})", parent.join("::")));
                }
            }
        }
    }
    found
}

fn graph<'a>(parent: &[String], sources: &'a [Source]) -> Graph<'a> {
    let depth = parent.len();
    let own: Vec<&Source> =
        sources.iter().filter(|source| source.module.starts_with(parent)).collect();
    let exports: BTreeMap<&str, &str> = own
        .iter()
        .filter(|source| source.module.len() == depth)
        .flat_map(|root| &root.names.exports)
        .filter_map(|export| Some((export.new.as_str(), export.name.segments.get(depth)?.as_str())))
        .collect();
    let mut graph = Graph::new();
    for source in own {
        let Some(from) = source.module.get(depth) else { continue };
        for name in source.names.paths.iter().filter(|name| name.is_own) {
            let Some(named) = name.segments.get(depth) else { continue };
            let to = exports.get(named.as_str()).copied().unwrap_or(named);
            let is_child = name.segments.starts_with(parent) && to.starts_with(char::is_lowercase);
            if is_child && to != from {
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
