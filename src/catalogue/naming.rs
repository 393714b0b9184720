//! Resolving a typed name to a tool.

use crate::model::{ToolName, safe_name};
use crate::util::spelling::similarity;

/// What may separate a component from a tool in input, longest first.
const SEPARATORS: [&str; 5] = ["__", "-", ".", "/", ":"];

const SUGGESTIONS: usize = 3;

/// Below this likeness (0 to 1) a name is not worth suggesting.
const LIKENESS: f64 = 0.7;

/// Resolves what a person typed: an exact full name wins, then the longest known component
/// followed by a separator and one of its tools, then a bare tool name. Gives several items when it
/// is the bare name of all of them, and none when nothing is called so.
///
/// Of two equal full names the first in the list is meant, as in the catalogue.
pub fn resolve<'i, T>(
    input: &str,
    items: &'i [T],
    name_of: impl Fn(&T) -> &ToolName,
) -> Vec<&'i T> {
    if let Some(exact) = items.iter().find(|item| is_full(name_of(item), input)) {
        return vec![exact];
    }
    let qualified = items
        .iter()
        .filter_map(|item| {
            let name = name_of(item);
            let component = name.component()?;
            let rest = after_component(input, component)?;
            (rest == name.tool()).then_some((component.len(), item))
        })
        // The first of the longest: `max_by_key` would take the last.
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    match qualified {
        Some((_, item)) => vec![item],
        None => items.iter().filter(|item| name_of(item).tool() == input).collect(),
    }
}

/// The known components that `input` may begin with, longest first.
pub fn components<'a>(input: &str, components: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut prefixes: Vec<&str> =
        components.into_iter().filter(|c| after_component(input, c).is_some()).collect();
    prefixes.sort_by_key(|c| std::cmp::Reverse(c.len()));
    prefixes.dedup();
    prefixes
}

/// Whether a server with this name is meant: by it, or by the name in its file, with characters in
/// place of which the name here has dashes.
pub fn is_meant(input: &str, name: &str) -> bool {
    input == name || !input.contains(['/', ':']) && safe_name(input) == name
}

/// What follows `component` and a separator at the start of `input`.
pub fn after_component<'a>(input: &'a str, component: &str) -> Option<&'a str> {
    let (start, rest) = input.split_at_checked(component.len())?;
    if !is_meant(start, component) {
        return None;
    }
    SEPARATORS.iter().find_map(|s| rest.strip_prefix(s)).filter(|tool| !tool.is_empty())
}

/// The hint that names the known tools most like `input`, best first: `did you mean 'a' or 'b'?`.
/// `None` when no name is similar.
pub fn did_you_mean(input: &str, names: &[&ToolName]) -> Option<String> {
    let near: Vec<String> = suggest(input, names).iter().map(|name| format!("'{name}'")).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

/// Known names that look like `input`, most similar first; both full and bare names are compared.
fn suggest(input: &str, names: &[&ToolName]) -> Vec<String> {
    let input = input.to_lowercase();
    let mut near: Vec<(f64, String)> = names
        .iter()
        .filter_map(|name| {
            let full = name.full();
            let likeness = similarity(&input, &full.to_lowercase())
                .max(similarity(&input, &name.tool().to_lowercase()));
            (likeness >= LIKENESS).then_some((likeness, full))
        })
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.dedup_by(|a, b| a.1 == b.1);
    near.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

/// Compares without building the full name, since this runs over whole catalogues.
fn is_full(name: &ToolName, input: &str) -> bool {
    match name.component() {
        None => name.tool() == input,
        Some(component) => input
            .strip_prefix(component)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|tool| tool == name.tool()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The places of what is meant.
    fn find(input: &str, names: &[ToolName]) -> Vec<usize> {
        let numbered: Vec<(usize, &ToolName)> = names.iter().enumerate().collect();
        resolve(input, &numbered, |(_, name)| name).into_iter().map(|(at, _)| *at).collect()
    }

    fn some_names() -> Vec<ToolName> {
        vec![
            ToolName::plain("calculator"),
            ToolName::of("notes", "read"),
            ToolName::of("my-notes", "read"),
            ToolName::of("github", "search_issues"),
            ToolName::of("a", "b-c"),
            ToolName::of("a-b", "d"),
        ]
    }

    #[test]
    fn every_separator_is_accepted() {
        for input in [
            "github-search_issues",
            "github.search_issues",
            "github/search_issues",
            "github:search_issues",
            "github__search_issues",
            "search_issues",
        ] {
            assert_eq!(find(input, &some_names()), [3], "{input}");
        }
    }

    #[test]
    fn a_server_answers_to_the_name_in_its_file_too() {
        let names = [ToolName::of("My-Server", "echo"), ToolName::of("My-Server", "a b")];
        assert_eq!(find("My Server-echo", &names), [0]);
        assert_eq!(find("My Server.a b", &names), [1]);
        assert_eq!(find("My/Server-echo", &names), [0; 0]);
    }

    #[test]
    fn the_longest_component_wins() {
        let names = [ToolName::of("a", "b.c"), ToolName::of("a.b", "c")];
        assert_eq!(find("a.b.c", &names), [1]);
        assert_eq!(components("a.b.c", ["a", "a.b", "b"]), ["a.b", "a"]);
    }

    #[test]
    fn an_exact_full_name_wins_over_everything() {
        let names = [ToolName::of("x", "a-b"), ToolName::of("a", "b"), ToolName::plain("a-b")];
        assert_eq!(find("a-b", &names), [1]);
    }

    #[test]
    fn a_bare_name_that_several_have_is_ambiguous() {
        assert_eq!(find("read", &some_names()), [1, 2]);
        assert_eq!(find("nothing", &some_names()), [0; 0]);
        assert_eq!(find("notes-", &some_names()), [0; 0]);
        assert_eq!(find("", &some_names()), [0; 0]);
    }

    #[test]
    fn near_names_are_suggested_by_full_and_by_bare_name() {
        let names = some_names();
        let names: Vec<&ToolName> = names.iter().collect();
        assert_eq!(suggest("calculater", &names)[0], "calculator");
        assert_eq!(suggest("serch_issues", &names)[0], "github-search_issues");
        assert!(suggest("zzzz", &names).is_empty());
    }

    fn word() -> impl Strategy<Value = String> {
        "[a-c]([-._][a-c]|[a-c]){0,3}"
    }

    fn name() -> impl Strategy<Value = ToolName> {
        (proptest::option::of(word()), word()).prop_map(|(component, tool)| match component {
            Some(component) => ToolName::of(component, tool),
            None => ToolName::plain(tool),
        })
    }

    proptest! {
        #[test]
        fn every_full_name_leads_back_to_a_tool_of_that_name(
            names in proptest::collection::vec(name(), 1..8),
            pick in any::<proptest::sample::Index>(),
        ) {
            let full_name = pick.get(&names).full();
            let [at] = find(&full_name, &names)[..] else {
                return Err(TestCaseError::fail(format!("{full_name} was not found")));
            };
            prop_assert_eq!(names[at].full(), full_name);
        }

        #[test]
        fn whatever_is_found_fits_the_input(
            names in proptest::collection::vec(name(), 0..8),
            input in word(),
        ) {
            let fits = |at: usize| {
                let name = &names[at];
                name.full() == input
                    || name.tool() == input
                    || name.component().and_then(|c| after_component(&input, c)) == Some(name.tool())
            };
            match find(&input, &names).as_slice() {
                [] => prop_assert!((0..names.len()).all(|at| !fits(at))),
                all => prop_assert!(all.iter().all(|at| fits(*at))),
            }
        }
    }
}
