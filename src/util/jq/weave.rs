//! Weaves the counting of steps into a parsed filter.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::Part;

use super::budget::{MULTIPLY, TICK};

/// The variable that holds the right side of `l *= r`; no filter can spell it.
const FACTOR: &str = "$!factor";

type Filter<'s> = Term<&'s str>;

/// `if !tick then t end`: counts a step, then does what `t` does — for values, paths and updates
/// alike, and a last call in `t` stays a last call.
fn ticked<'s>(term: Filter<'s>) -> Filter<'s> {
    Term::IfThenElse(vec![(Term::Call(TICK, Vec::new()), term)], None)
}

/// Counts a step for every output of `t`.
fn counted<'s>(term: Filter<'s>) -> Filter<'s> {
    Term::BinOp(Box::new(term), BinaryOp::Pipe(None), Box::new(ticked(Term::Id)))
}

/// A definition that counts each of its calls.
pub(super) fn definition<'s>(def: Def<&'s str>) -> Def<&'s str> {
    Def { name: def.name, args: def.args, body: ticked(term(def.body)) }
}

/// A filter that counts wherever it can loop.
pub(super) fn term<'s>(filter: Filter<'s>) -> Filter<'s> {
    match filter {
        Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_) => filter,
        Term::Arr(None) => filter,
        Term::Str(format, parts) => {
            let parts = parts.into_iter().map(|part| match part {
                StrPart::Term(inner) => StrPart::Term(term(inner)),
                other => other,
            });
            Term::Str(format, parts.collect())
        }
        Term::Arr(Some(inner)) => Term::Arr(Some(Box::new(counted(term(*inner))))),
        Term::Obj(entries) => {
            let entries = entries.into_iter().map(|(key, value)| (term(key), value.map(term)));
            ticked(Term::Obj(entries.collect()))
        }
        Term::Neg(inner) => Term::Neg(boxed(*inner)),
        Term::BinOp(left, operator, right) => operation(*left, operator, *right),
        Term::Label(name, inner) => Term::Label(name, boxed(*inner)),
        Term::Fold(name, items, pattern, steps) => Term::Fold(
            name,
            boxed(*items),
            self::pattern(pattern),
            steps.into_iter().map(|step| ticked(term(step))).collect(),
        ),
        Term::TryCatch(inner, handler) => {
            Term::TryCatch(boxed(*inner), handler.map(|handler| boxed(*handler)))
        }
        Term::IfThenElse(branches, otherwise) => Term::IfThenElse(
            branches.into_iter().map(|(when, then)| (term(when), term(then))).collect(),
            otherwise.map(|otherwise| boxed(*otherwise)),
        ),
        Term::Def(definitions, inner) => {
            Term::Def(definitions.into_iter().map(definition).collect(), boxed(*inner))
        }
        Term::Call(name, arguments) => {
            Term::Call(name, arguments.into_iter().map(|a| counted(term(a))).collect())
        }
        Term::Path(inner, mut path) => {
            for (part, _) in &mut path.0 {
                let old = std::mem::take(part);
                *part = match old {
                    Part::Index(index) => Part::Index(term(index)),
                    Part::Range(from, to) => Part::Range(from.map(term), to.map(term)),
                };
            }
            Term::Path(boxed(*inner), path)
        }
    }
}

fn boxed<'s>(filter: Filter<'s>) -> Box<Filter<'s>> {
    Box::new(term(filter))
}

fn operation<'s>(left: Filter<'s>, operator: BinaryOp<&'s str>, right: Filter<'s>) -> Filter<'s> {
    let (left, right) = (term(left), term(right));
    match operator {
        BinaryOp::Pipe(bound) => {
            Term::BinOp(Box::new(left), BinaryOp::Pipe(bound.map(pattern)), Box::new(ticked(right)))
        }
        BinaryOp::Math(Math::Mul) => Term::Call(MULTIPLY, vec![left, right]),
        BinaryOp::UpdateMath(Math::Mul) => {
            let product = Term::Call(MULTIPLY, vec![Term::Id, Term::Var(FACTOR)]);
            let update = Term::BinOp(Box::new(left), BinaryOp::Update, Box::new(product));
            let bind = BinaryOp::Pipe(Some(Pattern::Var(FACTOR)));
            Term::BinOp(Box::new(right), bind, Box::new(update))
        }
        other => Term::BinOp(Box::new(left), other, Box::new(right)),
    }
}

fn pattern<'s>(bound: Pattern<&'s str>) -> Pattern<&'s str> {
    match bound {
        Pattern::Var(name) => Pattern::Var(name),
        Pattern::Arr(items) => Pattern::Arr(items.into_iter().map(pattern).collect()),
        Pattern::Obj(entries) => Pattern::Obj(
            entries.into_iter().map(|(key, item)| (term(key), pattern(item))).collect(),
        ),
    }
}
