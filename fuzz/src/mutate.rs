//! Writes sources again with a switch at each decision: `mutate FIRST_NUMBER FILE`.
//!
//! A comparison, a logical operator, a negation or the answer of a function becomes
//! `if crate::mutant(7) { turned round } else { as it was }`, so that one build holds all mutants. The new
//! source goes to stdout; each mutant is a line on stderr: its number, the function it is in, what it was
//! and what it becomes. Tests, constants and what stands in macros are left alone.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is its output")]
#![expect(clippy::unwrap_used, reason = "a tool for this repository's own sources")]

use quote::{ToTokens, quote};
use syn::fold::{self, Fold};
use syn::{
    BinOp, Block, Expr, ExprBinary, ImplItemFn, Item, ItemFn, ReturnType, Signature, UnOp,
    parse_quote,
};

struct Mutator {
    next: u32,
    function: Vec<String>,
}

impl Mutator {
    fn number(&mut self, before: &impl ToTokens, after: &impl ToTokens) -> u32 {
        let text =
            |tokens: &dyn Fn() -> String| tokens().split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, after) = (
            text(&|| before.to_token_stream().to_string()),
            text(&|| after.to_token_stream().to_string()),
        );
        eprintln!("{}\t{}\t{before}\t{after}", self.next, self.function.join("::"));
        self.next += 1;
        self.next - 1
    }

    /// Ways to answer at once, in place of what a function does.
    fn answers(&mut self, signature: &Signature, block: Block) -> Block {
        let ReturnType::Type(_, kind) = &signature.output else { return block };
        let kind = kind.to_token_stream().to_string();
        let answers: &[&str] = match kind.as_str() {
            "bool" => &["true", "false"],
            kind if kind.starts_with("Option <") => &["None"],
            kind if kind.starts_with("Result < () ,") => &["Ok(())"],
            _ => &[],
        };
        let mut statements = block.stmts;
        for answer in answers {
            let answer: Expr = syn::parse_str(answer).unwrap();
            let number = self.number(&quote!(body), &answer);
            statements.insert(0, parse_quote!(if crate::mutant(#number) { return #answer; }));
        }
        Block { stmts: statements, ..block }
    }

    fn inside<T>(&mut self, signature: &Signature, fold: impl FnOnce(&mut Self) -> T) -> T {
        self.function.push(signature.ident.to_string());
        let folded = fold(self);
        self.function.pop();
        folded
    }
}

fn turned(operator: &BinOp) -> Vec<BinOp> {
    match operator {
        BinOp::Eq(_) => vec![parse_quote!(!=)],
        BinOp::Ne(_) => vec![parse_quote!(==)],
        BinOp::Lt(_) => vec![parse_quote!(<=), parse_quote!(>=)],
        BinOp::Le(_) => vec![parse_quote!(<), parse_quote!(>)],
        BinOp::Gt(_) => vec![parse_quote!(>=), parse_quote!(<=)],
        BinOp::Ge(_) => vec![parse_quote!(>), parse_quote!(<)],
        BinOp::And(_) => vec![parse_quote!(||)],
        BinOp::Or(_) => vec![parse_quote!(&&)],
        _ => Vec::new(),
    }
}

/// `a && let Some(b) = c` is no value.
fn holds_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(ExprBinary { left, right, op: BinOp::And(_), .. }) => {
            holds_let(left) || holds_let(right)
        }
        _ => false,
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string();
        text.contains("test") && (text.contains("cfg") || text.ends_with("test]"))
    })
}

impl Fold for Mutator {
    fn fold_item(&mut self, item: Item) -> Item {
        match &item {
            Item::Mod(module) if is_test(&module.attrs) => item,
            Item::Const(_) | Item::Static(_) | Item::Macro(_) => item,
            Item::Fn(ItemFn { attrs, sig, .. }) if is_test(attrs) || sig.constness.is_some() => {
                item
            }
            _ => fold::fold_item(self, item),
        }
    }

    fn fold_item_fn(&mut self, item: ItemFn) -> ItemFn {
        let signature = item.sig.clone();
        let mut item = self.inside(&signature, |this| fold::fold_item_fn(this, item));
        item.block =
            Box::new(self.inside(&signature, |this| this.answers(&signature, *item.block)));
        item
    }

    fn fold_impl_item_fn(&mut self, item: ImplItemFn) -> ImplItemFn {
        if item.sig.constness.is_some() || is_test(&item.attrs) {
            return item;
        }
        let signature = item.sig.clone();
        let mut item = self.inside(&signature, |this| fold::fold_impl_item_fn(this, item));
        item.block = self.inside(&signature, |this| this.answers(&signature, item.block));
        item
    }

    fn fold_impl_item_const(&mut self, item: syn::ImplItemConst) -> syn::ImplItemConst {
        item
    }

    fn fold_pat(&mut self, pattern: syn::Pat) -> syn::Pat {
        pattern
    }

    fn fold_type(&mut self, kind: syn::Type) -> syn::Type {
        kind
    }

    fn fold_expr(&mut self, expression: Expr) -> Expr {
        let original = expression.clone();
        let folded = fold::fold_expr(self, expression);
        match &original {
            Expr::Binary(binary) if !holds_let(&original) => {
                turned(&binary.op).into_iter().fold(folded, |folded, op| {
                    let mutated = Expr::Binary(ExprBinary { op, ..binary.clone() });
                    let number = self.number(&original, &mutated);
                    parse_quote!((if crate::mutant(#number) { #mutated } else { #folded }))
                })
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let inner = &unary.expr;
                let number = self.number(&original, inner);
                parse_quote!((if crate::mutant(#number) { #inner } else { #folded }))
            }
            _ => folded,
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, first, file] = &arguments[..] else { panic!("usage: mutate FIRST_NUMBER FILE") };
    let source = syn::parse_file(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut mutator = Mutator { next: first.parse().unwrap(), function: Vec::new() };
    println!("{}", mutator.fold_file(source).to_token_stream());
}
