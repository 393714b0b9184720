//! Rules about texts: errors that are only words, and comments that say nothing.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::Visit;
use syn::{BinOp, Expr, File, GenericArgument, Lit, Member, PathArguments, Type};

/// Fields and methods that give the words of an error.
const WORDS: [&str; 4] = ["message", "reason", "detail", "to_string"];

/// Methods that look into a text.
const SEARCHES: [&str; 5] =
    ["contains", "starts_with", "ends_with", "find", "eq_ignore_ascii_case"];

/// A place where an error is only text.
pub(super) struct Untyped {
    /// Its line.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// The text of a doc comment.
pub(super) struct DocComment {
    /// Its first line.
    pub line: usize,
    /// All of its text.
    pub text: String,
}

/// Errors that are a plain `String`, and decisions taken by the words of an error.
pub(super) fn untyped(file: &File) -> Vec<Untyped> {
    let mut search = Search(Vec::new());
    search.visit_file(file);
    search.0
}

struct Search(Vec<Untyped>);

impl Search {
    fn found(&mut self, span: Span, what: &'static str) {
        self.0.push(Untyped { line: span.start().line, what });
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if segment.ident == "Result"
            && let PathArguments::AngleBracketed(arguments) = &segment.arguments
            && let Some(GenericArgument::Type(Type::Path(error))) = arguments.args.iter().nth(1)
            && error.path.is_ident("String")
        {
            self.found(segment.ident.span(), "an error that is only a String");
        }
        syn::visit::visit_path_segment(self, segment);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if SEARCHES.iter().any(|search| call.method == search) && gives_words(&call.receiver) {
            self.found(call.method.span(), "looks into the words of an error");
        }
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        let compares = matches!(expression.op, BinOp::Eq(_) | BinOp::Ne(_));
        let (left, right) = (&expression.left, &expression.right);
        if compares
            && ((gives_words(left) && is_text(right)) || (gives_words(right) && is_text(left)))
        {
            self.found(expression.span(), "compares the words of an error");
        }
        syn::visit::visit_expr_binary(self, expression);
    }
}

fn is_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Lit(literal) if matches!(literal.lit, Lit::Str(_)))
}

/// Whether an expression is the text of something, such as `error.message` or `x.to_string()`.
fn gives_words(expression: &Expr) -> bool {
    match expression {
        Expr::Field(field) => {
            matches!(&field.member, Member::Named(name) if WORDS.iter().any(|word| name == word))
        }
        Expr::MethodCall(call) => {
            WORDS.iter().any(|word| call.method == word)
                || (matches!(call.method.to_string().as_str(), "as_str" | "as_deref" | "as_ref")
                    && gives_words(&call.receiver))
        }
        Expr::Reference(reference) => gives_words(&reference.expr),
        Expr::Paren(inner) => gives_words(&inner.expr),
        _ => false,
    }
}

/// The doc comments of a file; lines that follow each other are one comment.
pub(super) fn doc_comments(file: &File) -> Vec<DocComment> {
    let mut lines = Comments(Vec::new());
    lines.visit_file(file);
    let mut found: Vec<DocComment> = Vec::new();
    let mut last = 0;
    for (line, text) in lines.0 {
        match found.last_mut() {
            Some(comment) if last + 1 == line => comment.text.push_str(&text),
            _ => found.push(DocComment { line, text }),
        }
        last = line;
    }
    found
}

struct Comments(Vec<(usize, String)>);

impl<'ast> Visit<'ast> for Comments {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(text) = &literal.lit
        {
            self.0.push((attribute.span().start().line, text.value()));
        }
    }
}

/// The words of a line of code, in lower case: `on_course`, `Course` and `ON_COURSE` all have
/// `course`, `snapshot` has no `shot`.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous = ' ';
    for c in line.chars() {
        if c.is_alphabetic() {
            let starts = !previous.is_alphabetic() || (c.is_uppercase() && previous.is_lowercase());
            if starts {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        previous = c;
    }
    words
}
