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

#[test]
fn what_is_promised_names_only_what_is_promised() {
    let collector = collected();
    let promised = |name: &&String| collector.exported.contains_key(*name);
    let own = collector.named.iter().filter(|name| collector.types.contains(*name));
    let hidden: Vec<&String> = own.filter(|name| !promised(name)).collect();
    assert!(hidden.is_empty(), "named on the front page, and not on it: {hidden:?}");
}

/// The list as it is now.
fn surface() -> String {
    let collector = collected();
    let mut list = String::from(
        "# What `toolhost` promises as a library. A line that changes is a change for dependents.\n",
    );
    let items = &collector.items;
    let exported = collector.exported.keys();
    let missing: Vec<_> = exported.filter(|name| !items.contains_key(*name)).collect();
    assert!(missing.is_empty(), "not found: {missing:?}");
    for (head, parts) in items.values() {
        writeln!(list, "\n{head}").unwrap();
        for part in parts {
            writeln!(list, "    {part}").unwrap();
        }
    }
    list
}

fn collected() -> Collector {
    let mut exported = BTreeMap::new();
    let lib = sources().iter().find(|source| source.path == "lib.rs").unwrap();
    for item in syn::parse_file(&lib.text).unwrap().items {
        if let Item::Use(import) = item {
            leaves(&import.tree, "", &mut exported);
        }
    }
    let mut collector = Collector { exported, ..Collector::default() };
    for source in sources() {
        let room = source.path.split(['/', '.']).next().unwrap_or_default();
        collector.room = String::from(room);
        collector.visit_file(&syn::parse_file(&source.text).unwrap());
    }
    collector
}

/// The names that an import gives on, and the room of each.
fn leaves(tree: &UseTree, room: &str, out: &mut BTreeMap<String, String>) {
    match tree {
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            leaves(&path.tree, if room.is_empty() { &first } else { room }, out);
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, room, out)),
        UseTree::Name(name) => drop(out.insert(name.ident.to_string(), room.to_owned())),
        UseTree::Rename(_) | UseTree::Glob(_) => panic!("the surface is a list of names"),
    }
}

#[derive(Default)]
struct Collector {
    /// What is promised, and the room where it is.
    exported: BTreeMap<String, String>,
    /// By name: how an item begins, and its public parts.
    items: BTreeMap<String, (String, BTreeSet<String>)>,
    /// Every public type of the crate.
    types: BTreeSet<String>,
    /// Every type and trait in a signature or a field that is shown.
    named: BTreeSet<String>,
    /// The room that is looked at.
    room: String,
}

/// Notes the types and traits of what it visits.
struct TypeNames<'a>(&'a mut BTreeSet<String>);

impl<'a> Visit<'a> for TypeNames<'_> {
    fn visit_path(&mut self, path: &'a syn::Path) {
        self.0.extend(path.segments.last().map(|last| last.ident.to_string()));
        syn::visit::visit_path(self, path);
    }
}

impl Collector {
    fn parts(&mut self, name: &str, head: &str) -> Option<&mut BTreeSet<String>> {
        if !self.exported.contains_key(name) {
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
                let is_shown =
                    |field: &&syn::Field| is_public(&field.vis) && !is_hidden(&field.attrs);
                let shown: Vec<_> = it.fields.iter().filter(is_shown).collect();
                for field in &shown {
                    let name = field.ident.as_ref().map_or("0".to_owned(), ToString::to_string);
                    parts.insert(format!("{name}: {}", text(&field.ty)));
                }
                for field in shown {
                    TypeNames(&mut self.named).visit_type(&field.ty);
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
                let fields = it.variants.iter().flat_map(|variant| &variant.fields);
                fields.for_each(|field| TypeNames(&mut self.named).visit_type(&field.ty));
            }
            Item::Trait(it) if is_public(&it.vis) => {
                self.types.insert(it.ident.to_string());
                let Some(parts) = self.parts(&it.ident.to_string(), "trait") else { return };
                let methods = it.items.iter().filter_map(|part| match part {
                    syn::TraitItem::Fn(method) if !is_hidden(&method.attrs) => Some(method),
                    _ => None,
                });
                for method in methods.clone() {
                    let kind = if method.default.is_some() { "provided" } else { "required" };
                    parts.insert(format!("{kind} {}", text(&method.sig)));
                }
                methods.for_each(|method| TypeNames(&mut self.named).visit_signature(&method.sig));
            }
            Item::Type(it) if is_public(&it.vis) => {
                self.types.insert(it.ident.to_string());
                let Some(parts) = self.parts(&it.ident.to_string(), "type") else { return };
                parts.insert(text(&it.ty));
                TypeNames(&mut self.named).visit_type(&it.ty);
            }
            // Names of functions are not unique.
            Item::Fn(it)
                if is_public(&it.vis)
                    && self.exported.get(&it.sig.ident.to_string()) == Some(&self.room) =>
            {
                let Some(parts) = self.parts(&it.sig.ident.to_string(), "fn") else { return };
                parts.insert(text(&it.sig));
                TypeNames(&mut self.named).visit_signature(&it.sig);
            }
            Item::Impl(it) if it.trait_.is_none() => {
                let syn::Type::Path(path) = it.self_ty.as_ref() else { return };
                let Some(name) = path.path.segments.last() else { return };
                let Some(parts) = self.parts(&name.ident.to_string(), "") else { return };
                let methods = it.items.iter().filter_map(|part| match part {
                    syn::ImplItem::Fn(method) => Some(method),
                    _ => None,
                });
                let is_shown = |it: &&syn::ImplItemFn| is_public(&it.vis) && !is_hidden(&it.attrs);
                let shown: Vec<_> = methods.filter(is_shown).collect();
                parts.extend(shown.iter().map(|method| text(&method.sig)));
                for method in shown {
                    TypeNames(&mut self.named).visit_signature(&method.sig);
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
