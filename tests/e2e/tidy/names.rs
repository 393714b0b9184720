//! What a file names: paths, imports and re-exports, also inside macros and in groups.
//!
//! Owns: turning `use crate::{a::B, c}`, `super::x` and `crate::y!` into absolute paths with lines.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::Visit;
use syn::{File, UseTree, Visibility};

/// A path as it is written, resolved as far as the text tells.
#[derive(Clone)]
pub(super) struct Name {
    /// Whether it leads into this crate: `crate::`, `super::`, `self::` or the crate's own name.
    pub is_own: bool,
    /// Its segments, without the words that lead to the root.
    pub segments: Vec<String>,
    /// The line it is written on.
    pub line: usize,
}

/// An import with the name it has from here on.
pub(super) struct Alias {
    /// The path that is imported.
    pub name: Name,
    /// What it is called from here on.
    pub new: String,
}

/// The definition of a type: struct, enum, union, trait or alias.
pub(super) struct TypeDefinition {
    /// Its name.
    pub name: String,
    /// The line of its name.
    pub line: usize,
    /// Whether anything outside of its module may use it.
    pub is_public: bool,
}

/// What a file of the product names and defines.
#[derive(Default)]
pub(super) struct Names {
    /// Every path, in imports, code and macros.
    pub paths: Vec<Name>,
    /// Imports of this crate's types under another name.
    pub aliases: Vec<Alias>,
    /// What `pub use` gives on, by the name it has from here on.
    pub exports: Vec<Alias>,
    /// Type definitions outside of functions.
    pub types: Vec<TypeDefinition>,
    module: Vec<String>,
}

impl Names {
    /// Everything that the file of a module names.
    pub(super) fn of(module: &[String], file: &File) -> Self {
        let mut names = Self { module: module.to_vec(), ..Self::default() };
        names.visit_file(file);
        names
    }

    /// A written path as seen from the crate's root.
    fn resolve(&self, written: &[String], line: usize) -> Name {
        let mut base = self.module.clone();
        let (mut is_own, mut skipped) = (false, 0);
        for word in written {
            match word.as_str() {
                "crate" | "$crate" | "toolhost" => base.clear(),
                "super" => drop(base.pop()),
                "self" => {}
                _ => break,
            }
            is_own = true;
            skipped += 1;
        }
        let rest = written[skipped..].iter().cloned();
        let segments = if is_own { base.into_iter().chain(rest).collect() } else { rest.collect() };
        Name { is_own, segments, line }
    }

    fn import(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, before)),
            UseTree::Name(name) => {
                let line = name.ident.span().start().line;
                let mut written = before.clone();
                written.push(name.ident.to_string());
                self.paths.push(self.resolve(&written, line));
            }
            UseTree::Rename(rename) => {
                let line = rename.ident.span().start().line;
                let mut written = before.clone();
                written.push(rename.ident.to_string());
                self.paths.push(self.resolve(&written, line));
                if rename.rename != "_" {
                    let name = self.resolve(&written, line);
                    self.aliases.push(Alias { name, new: rename.rename.to_string() });
                }
            }
            UseTree::Glob(glob) => {
                let line = glob.star_token.span().start().line;
                self.paths.push(self.resolve(before, line));
            }
        }
    }

    /// The paths of a macro's tokens: `a::b`, however it is nested.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut written: Vec<String> = Vec::new();
        let (mut line, mut colons, mut is_variable) = (0, 0, false);
        for tree in tokens {
            match tree {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.end(&mut written, line);
                        line = word.span().start().line;
                    }
                    let dollar = if is_variable { "$" } else { "" };
                    written.push(format!("{dollar}{word}"));
                    (colons, is_variable) = (0, false);
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                other => {
                    self.end(&mut written, line);
                    colons = 0;
                    is_variable = matches!(&other, TokenTree::Punct(sign) if sign.as_char() == '$');
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut written, line);
    }

    fn end(&mut self, written: &mut Vec<String>, line: usize) {
        if written.len() > 1 {
            self.paths.push(self.resolve(written, line));
        }
        written.clear();
    }

    fn define(&mut self, name: &syn::Ident, visibility: &Visibility) {
        self.types.push(TypeDefinition {
            name: name.to_string(),
            line: name.span().start().line,
            is_public: !matches!(visibility, Visibility::Inherited),
        });
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let before = self.paths.len();
        self.import(&item.tree, &mut Vec::new());
        if !matches!(item.vis, Visibility::Inherited) {
            let exports = self.paths[before..].iter().filter_map(|path| {
                let new = path.segments.last()?.clone();
                Some(Alias { name: path.clone(), new })
            });
            self.exports.extend(exports);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.paths.push(self.resolve(&written, path.span().start().line));
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        syn::visit::visit_macro(self, call);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.module.push(module.ident.to_string());
        syn::visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.define(&item.ident, &item.vis);
        syn::visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.define(&item.ident, &item.vis);
        syn::visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.define(&item.ident, &item.vis);
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.define(&item.ident, &item.vis);
        syn::visit::visit_item_type(self, item);
    }
}
