//! Instrumenting a parsed filter to count steps, and collecting the filters it calls.

use std::collections::BTreeSet;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::Part;

use super::budget::{MULTIPLY, TICK};

/// The variable that holds the right side of `l *= r`; no filter can spell it.
const FACTOR: &str = "$!factor";

type Filter<'s> = Term<&'s str>;

/// A definition that counts, and the names of what it calls.
#[derive(Clone)]
pub(super) struct InstrumentedDef<'s> {
    pub(super) definition: Def<&'s str>,
    pub(super) calls: BTreeSet<&'s str>,
}

/// Makes a definition count each of its calls, and wherever its body can loop.
pub(super) fn definition(def: Def<&str>) -> InstrumentedDef<'_> {
    // String interpolation calls this one without naming it.
    let mut weaver = Instrumenter { calls: BTreeSet::from(["tostring"]) };
    let definition = weaver.definition(def);
    InstrumentedDef { definition, calls: weaver.calls }
}

struct Instrumenter<'s> {
    calls: BTreeSet<&'s str>,
}

/// `if !tick then t end`: counts a step, then does what `t` does — for values, paths and updates
/// alike, and a last call in `t` stays a last call.
fn ticked(term: Filter<'_>) -> Filter<'_> {
    Term::IfThenElse(vec![(Term::Call(TICK, Vec::new()), term)], None)
}

/// Counts a step for every output of `t`.
fn counted(term: Filter<'_>) -> Filter<'_> {
    Term::BinOp(Box::new(term), BinaryOp::Pipe(None), Box::new(ticked(Term::Id)))
}

impl<'s> Instrumenter<'s> {
    fn definition(&mut self, def: Def<&'s str>) -> Def<&'s str> {
        Def { name: def.name, args: def.args, body: ticked(self.term(def.body)) }
    }

    fn term(&mut self, filter: Filter<'s>) -> Filter<'s> {
        match filter {
            Term::Id
            | Term::Recurse
            | Term::Num(_)
            | Term::Break(_)
            | Term::Var(_)
            | Term::Arr(None) => filter,
            Term::Str(format, parts) => {
                self.calls.extend(format);
                let parts = parts.into_iter().map(|part| match part {
                    StrPart::Term(inner) => StrPart::Term(self.term(inner)),
                    other => other,
                });
                Term::Str(format, parts.collect())
            }
            Term::Arr(Some(inner)) => Term::Arr(Some(Box::new(counted(self.term(*inner))))),
            Term::Obj(entries) => {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (self.term(key), value.map(|value| self.term(value))));
                ticked(Term::Obj(entries.collect()))
            }
            Term::Neg(inner) => Term::Neg(self.boxed(*inner)),
            Term::BinOp(left, operator, right) => self.operation(*left, operator, *right),
            Term::Label(name, inner) => Term::Label(name, self.boxed(*inner)),
            Term::Fold(name, items, pattern, steps) => Term::Fold(
                name,
                self.boxed(*items),
                self.pattern(pattern),
                steps.into_iter().map(|step| ticked(self.term(step))).collect(),
            ),
            Term::TryCatch(inner, handler) => {
                Term::TryCatch(self.boxed(*inner), handler.map(|handler| self.boxed(*handler)))
            }
            Term::IfThenElse(branches, otherwise) => Term::IfThenElse(
                branches
                    .into_iter()
                    .map(|(when, then)| (self.term(when), self.term(then)))
                    .collect(),
                otherwise.map(|otherwise| self.boxed(*otherwise)),
            ),
            Term::Def(definitions, inner) => Term::Def(
                definitions.into_iter().map(|def| self.definition(def)).collect(),
                self.boxed(*inner),
            ),
            Term::Call(name, arguments) => {
                self.calls.insert(name);
                let arguments = arguments.into_iter().map(|argument| counted(self.term(argument)));
                Term::Call(name, arguments.collect())
            }
            Term::Path(inner, mut path) => {
                for (part, _) in &mut path.0 {
                    *part = match std::mem::take(part) {
                        Part::Index(index) => Part::Index(self.term(index)),
                        Part::Range(from, to) => {
                            Part::Range(from.map(|t| self.term(t)), to.map(|t| self.term(t)))
                        }
                    };
                }
                Term::Path(self.boxed(*inner), path)
            }
        }
    }

    fn boxed(&mut self, filter: Filter<'s>) -> Box<Filter<'s>> {
        Box::new(self.term(filter))
    }

    fn operation(
        &mut self,
        left: Filter<'s>,
        operator: BinaryOp<&'s str>,
        right: Filter<'s>,
    ) -> Filter<'s> {
        let (left, right) = (self.term(left), self.term(right));
        match operator {
            BinaryOp::Pipe(bound) => Term::BinOp(
                Box::new(left),
                BinaryOp::Pipe(bound.map(|bound| self.pattern(bound))),
                Box::new(ticked(right)),
            ),
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

    fn pattern(&mut self, bound: Pattern<&'s str>) -> Pattern<&'s str> {
        match bound {
            Pattern::Var(name) => Pattern::Var(name),
            Pattern::Arr(items) => {
                Pattern::Arr(items.into_iter().map(|item| self.pattern(item)).collect())
            }
            Pattern::Obj(entries) => Pattern::Obj(
                entries
                    .into_iter()
                    .map(|(key, item)| (self.term(key), self.pattern(item)))
                    .collect(),
            ),
        }
    }
}
