//! The sources of the crate as a tree of modules, parsed.
//!
//! Owns: finding every file from `lib.rs` and `main.rs` down, and leaving out exactly what
//! `#[cfg(test)]` gates: an item, a module, or the file of a module. Knows no rule.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use syn::{Attribute, File, Item};

use super::names::Names;
use super::texts::{self, DocComment, Untyped};

/// A source file below `src`.
pub(super) struct Source {
    /// Its path below `src`, such as `mcp/wire.rs`.
    pub path: String,
    /// The path of its module, such as `["mcp", "wire"]`; empty for the roots.
    pub module: Vec<String>,
    /// Its text.
    pub text: String,
    /// What its product part names and defines.
    pub names: Names,
    /// Where its product part has errors that are only text.
    pub untyped: Vec<Untyped>,
    /// The doc comments of its product part.
    pub doc_comments: Vec<DocComment>,
}

impl Source {
    /// The room that the file belongs to: the first segment of its path.
    pub(super) fn room(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// What a file says; nothing of it counts when all of it is for tests.
    pub(super) fn of(path: &str, text: String, is_gated: bool, parsed: File) -> Self {
        let module = module_of(Path::new(path));
        let product =
            if is_gated { File { items: Vec::new(), ..parsed } } else { without_tests(parsed) };
        Self {
            names: Names::of(&module, &product),
            untyped: texts::untyped(&product),
            doc_comments: texts::doc_comments(&product),
            path: path.to_owned(),
            module,
            text,
        }
    }
}

/// All files of the crate in the order of their paths, parsed once.
pub(super) fn sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let root = root();
        let mut found = Vec::new();
        for start in ["lib.rs", "main.rs"] {
            read(&root, &root.join(start), false, &mut found);
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    })
}

/// Paths below `src` of all Rust files on disk.
pub(super) fn files_on_disk() -> Vec<String> {
    let root = root();
    let (mut found, mut left) = (Vec::new(), vec![root.clone()]);
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(below(&root, &path));
            }
        }
    }
    found.sort();
    found
}

/// Whether an item is compiled for tests only.
pub(super) fn is_gated(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()
}

/// Reads a file and the files of the modules it declares.
fn read(root: &Path, path: &Path, gated: bool, found: &mut Vec<Source>) {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parsed =
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let relative = below(root, path);
    let module = module_of(Path::new(&relative));
    let directory = module.iter().fold(root.to_path_buf(), |directory, name| directory.join(name));
    read_modules(root, &directory, &parsed.items, gated, found);
    found.push(Source::of(&relative, text, gated, parsed));
}

fn read_modules(root: &Path, directory: &Path, items: &[Item], gated: bool, out: &mut Vec<Source>) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let gated = gated || is_gated(&module.attrs);
        let name = module.ident.to_string();
        if let Some((_, items)) = &module.content {
            read_modules(root, &directory.join(name), items, gated, out);
        } else {
            let flat = directory.join(format!("{name}.rs"));
            let nested = directory.join(&name).join("mod.rs");
            read(root, if flat.is_file() { &flat } else { &nested }, gated, out);
        }
    }
}

/// The module path of a file below `src`.
fn module_of(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = path
        .with_extension("")
        .iter()
        .map(|name| name.to_str().expect("a name in UTF-8").to_owned())
        .collect();
    if matches!(names.last().map(String::as_str), Some("mod"))
        || names.len() == 1 && is_root(&names[0])
    {
        names.pop();
    }
    names
}

fn is_root(name: &str) -> bool {
    matches!(name, "lib" | "main")
}

/// A file without the items that are compiled for tests only, at any depth.
fn without_tests(mut file: File) -> File {
    syn::visit_mut::VisitMut::visit_file_mut(&mut WithoutTests, &mut file);
    file
}

struct WithoutTests;

impl syn::visit_mut::VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut File) {
        file.items.retain(|item| !is_gated(attributes(item)));
        syn::visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_gated(attributes(item)));
        }
        syn::visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| {
            !is_gated(match item {
                syn::ImplItem::Fn(function) => &function.attrs,
                syn::ImplItem::Const(constant) => &constant.attrs,
                syn::ImplItem::Type(alias) => &alias.attrs,
                _ => &[],
            })
        });
        syn::visit_mut::visit_item_impl_mut(self, block);
    }
}

/// The attributes of an item, empty for kinds that the crate does not gate.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
