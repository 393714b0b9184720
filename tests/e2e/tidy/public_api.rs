//! What the library promises: the items that `lib.rs` gives on, with their public parts, against a
//! list that was read by a person.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, Item, UseTree, Visibility};

use super::sources::sources;

/// The list, beside this file.
const LIST: &str = "tests/e2e/tidy/public_api.txt";

#[test]
fn the_public_surface_is_the_reviewed_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = surface();
    let reviewed = std::fs::read_to_string(root.join(LIST)).unwrap_or_default();
    if found != reviewed {
        let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join("public_api.txt");
        std::fs::write(&new, &found).unwrap();
        let differs = |(a, b): &(&str, &str)| a != b;
        let first = found.lines().zip(reviewed.lines().chain(std::iter::repeat(""))).find(differs);
        panic!(
            "the public surface is another one, first at {first:?}; read it, and copy {} to {LIST}",
            new.display()
        );
    }
}

#[test]
fn modules_of_the_crate_are_no_part_of_its_surface() {
    let lib = sources().iter().find(|source| source.path == "lib.rs").unwrap();
    for item in syn::parse_file(&lib.text).unwrap().items {
        if let Item::Mod(module) = item {
            assert!(is_hidden(&module.attrs), "{} is shown in the documentation", module.ident);
        }
    }
}

/// The list as it is now.
fn surface() -> String {
    let mut exported = BTreeSet::new();
    let lib = sources().iter().find(|source| source.path == "lib.rs").unwrap();
    for item in syn::parse_file(&lib.text).unwrap().items {
        if let Item::Use(import) = item {
            leaves(&import.tree, &mut exported);
        }
    }
    let mut collector = Collector { exported, ..Collector::default() };
    for source in sources() {
        collector.visit_file(&syn::parse_file(&source.text).unwrap());
    }
    let mut list = String::from(
        "# What `toolhost` promises as a library. A line that changes is a change for dependents.\n",
    );
    let missing: Vec<_> =
        collector.exported.iter().filter(|name| !collector.items.contains_key(*name)).collect();
    assert!(missing.is_empty(), "not found: {missing:?}");
    for (head, parts) in collector.items.values() {
        writeln!(list, "\n{head}").unwrap();
        for part in parts {
            writeln!(list, "    {part}").unwrap();
        }
    }
    let known =
        |word: &&str| collector.types.contains(*word) && !collector.exported.contains(*word);
    let words = list.split(|c: char| !c.is_alphanumeric() && c != '_');
    let hidden: BTreeSet<&str> = words.filter(known).collect();
    let hidden = hidden.into_iter().collect::<Vec<_>>().join("\n    ");
    writeln!(list, "\n# Named above, and hidden\n    {hidden}").unwrap();
    list
}

fn leaves(tree: &UseTree, out: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, out),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, out)),
        UseTree::Name(name) => drop(out.insert(name.ident.to_string())),
        UseTree::Rename(_) | UseTree::Glob(_) => panic!("the surface is a list of names"),
    }
}

#[derive(Default)]
struct Collector {
    exported: BTreeSet<String>,
    /// By name: how an item begins, and its public parts.
    items: BTreeMap<String, (String, BTreeSet<String>)>,
    /// Every public type of the crate.
    types: BTreeSet<String>,
}

impl Collector {
    fn parts(&mut self, name: &str, head: &str) -> Option<&mut BTreeSet<String>> {
        if !self.exported.contains(name) {
            return None;
        }
        let (known, parts) = self.items.entry(name.to_owned()).or_default();
        if !head.is_empty() {
            *known = format!("{head} {name}");
        }
        Some(parts)
    }
}

impl<'a> Visit<'a> for Collector {
    fn visit_item(&mut self, item: &'a Item) {
        match item {
            Item::Struct(it) if is_public(&it.vis) => {
                self.types.insert(it.ident.to_string());
                let Some(parts) = self.parts(&it.ident.to_string(), "struct") else { return };
                for field in it.fields.iter().filter(|field| is_public(&field.vis)) {
                    let name = field.ident.as_ref().map_or("0".to_owned(), ToString::to_string);
                    parts.insert(format!("{name}: {}", text(&field.ty)));
                }
            }
            Item::Enum(it) if is_public(&it.vis) => {
                self.types.insert(it.ident.to_string());
                let Some(parts) = self.parts(&it.ident.to_string(), "enum") else { return };
                for variant in &it.variants {
                    let fields = variant.fields.iter().map(|field| {
                        let name = field.ident.as_ref().map(|name| format!("{name}: "));
                        format!("{}{}", name.unwrap_or_default(), text(&field.ty))
                    });
                    let fields = fields.collect::<Vec<_>>().join(", ");
                    parts.insert(format!("{}({fields})", variant.ident).replace("()", ""));
                }
            }
            Item::Trait(it) if is_public(&it.vis) => {
                self.types.insert(it.ident.to_string());
                let Some(parts) = self.parts(&it.ident.to_string(), "trait") else { return };
                for part in &it.items {
                    if let syn::TraitItem::Fn(method) = part {
                        let kind = if method.default.is_some() { "provided" } else { "required" };
                        parts.insert(format!("{kind} {}", text(&method.sig)));
                    }
                }
            }
            Item::Type(it) if is_public(&it.vis) => {
                self.types.insert(it.ident.to_string());
                let Some(parts) = self.parts(&it.ident.to_string(), "type") else { return };
                parts.insert(text(&it.ty));
            }
            Item::Fn(it) if is_public(&it.vis) => {
                let Some(parts) = self.parts(&it.sig.ident.to_string(), "fn") else { return };
                parts.insert(text(&it.sig));
            }
            Item::Impl(it) if it.trait_.is_none() => {
                let syn::Type::Path(path) = it.self_ty.as_ref() else { return };
                let Some(name) = path.path.segments.last() else { return };
                let Some(parts) = self.parts(&name.ident.to_string(), "") else { return };
                for part in &it.items {
                    if let syn::ImplItem::Fn(method) = part
                        && is_public(&method.vis)
                        && !is_hidden(&method.attrs)
                    {
                        parts.insert(text(&method.sig));
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
    })
}

/// The source of a node on one line.
fn text(node: &impl Spanned) -> String {
    let source = node.span().source_text().unwrap_or_default();
    let words: Vec<&str> = source.split_whitespace().collect();
    words.join(" ").replace("( ", "(").replace(", )", ")").replace(" )", ")")
}
