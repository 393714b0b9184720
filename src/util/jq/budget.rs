//! The step and memory budget of a filter, and the native filters that count against it.
//!
//! Instrumenting a parsed filter to count steps, and collecting the filters it calls.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jaq_core::box_iter::box_once;
use jaq_core::data::HasLut;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::ops::Math;
use jaq_core::path::Part;
use jaq_core::{Cv, DataT, Exn, Lut, ValXs};
use jaq_json::Val;

use super::JqError;
use crate::util::clock::{Clock as _, SystemClock};

pub struct JqLimits {
    pub steps: u64,
    pub time: Duration,
    /// The most stack, in bytes, before the filter counts as recursing too deeply.
    pub stack: usize,
}

impl Default for JqLimits {
    fn default() -> Self {
        Self { steps: 2_000_000, time: Duration::from_secs(5), stack: 64 << 20 }
    }
}

const CLOCK_EVERY: u64 = 1024;
/// The longest text a multiplication may make, in bytes.
const LONGEST_TEXT: usize = 16 << 20;

/// Counts one step, then passes its input on.
pub(super) const TICK: &str = "!tick";
pub(super) const MULTIPLY: &str = "!multiply";

/// The engine's data: JSON values, and the budget along with the compiled program.
pub(super) struct JqEngine;

impl DataT for JqEngine {
    type V<'a> = Val;
    type Data<'a> = JqRunData<'a>;
}

#[derive(Clone)]
pub(super) struct JqRunData<'a> {
    pub(super) lut: &'a Lut<JqEngine>,
    pub(super) budget: &'a JqBudget<'a>,
}

impl<'a> HasLut<'a, JqEngine> for JqRunData<'a> {
    fn lut(&self) -> &'a Lut<JqEngine> {
        self.lut
    }
}

pub(super) struct JqBudget<'l> {
    limits: &'l JqLimits,
    steps: Cell<u64>,
    next_clock_check: Cell<u64>,
    start: Instant,
    stack_base: usize,
    reason: RefCell<Option<JqError>>,
}

impl<'l> JqBudget<'l> {
    /// A fresh budget; the stack is counted from here.
    pub(super) fn start(limits: &'l JqLimits) -> Self {
        Self {
            limits,
            steps: Cell::new(0),
            next_clock_check: Cell::new(CLOCK_EVERY),
            start: SystemClock.now(),
            stack_base: stack_position(),
            reason: RefCell::new(None),
        }
    }

    /// Why the run was ended, when it was.
    pub(super) fn exceeded(&self) -> Option<JqError> {
        self.reason.borrow().clone()
    }

    /// Counts `steps`; false when the run has to end.
    fn spend(&self, steps: u64) -> bool {
        let spent = self.steps.get().saturating_add(steps);
        self.steps.set(spent);
        let over = if spent > self.limits.steps {
            Some(JqError::TooManySteps(self.limits.steps))
        } else if self.stack_base.abs_diff(stack_position()) > self.limits.stack {
            Some(JqError::TooDeep)
        } else if spent >= self.next_clock_check.get() {
            self.next_clock_check.set(spent + CLOCK_EVERY);
            let late = SystemClock.now().duration_since(self.start) > self.limits.time;
            late.then_some(JqError::TooSlow(self.limits.time))
        } else {
            None
        };
        let goes_on = over.is_none();
        if let Some(reason) = over {
            self.reason.borrow_mut().get_or_insert(reason);
        }
        goes_on
    }
}

/// About where the stack ends now. The distance of two such positions on one thread is the stack
/// between them.
#[inline(never)]
fn stack_position() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
}

/// The steps that passing a value on costs beyond the one: large values are copied when changed.
fn weight(value: &Val) -> u64 {
    let size = match value {
        Val::TStr(bytes) | Val::BStr(bytes) if bytes.len() > 64 << 10 => bytes.len() / 256,
        Val::Arr(items) if items.len() > 1 << 20 => items.len() / 64,
        _ => 0,
    };
    size as u64
}

pub(super) fn natives() -> impl Iterator<Item = Fun<JqEngine>> {
    [run((TICK, v(0), |cv| tick(cv))), run((MULTIPLY, v(2), |cv| multiply(cv)))].into_iter()
}

/// Gives `true`, or ends the run. Used as a condition, so that paths and updates pass through.
fn tick((context, input): Cv<'_, JqEngine>) -> ValXs<'_, Val> {
    let goes_on = context.data().budget.spend(1 + weight(&input));
    box_once(if goes_on { Ok(Val::Bool(true)) } else { Err(Exn::halt(1)) })
}

fn multiply((mut context, _): Cv<'_, JqEngine>) -> ValXs<'_, Val> {
    let right = context.pop_var();
    let left = context.pop_var();
    bome(match (text_length(&left), text_length(&right)) {
        (Some(length), None) | (None, Some(length)) => {
            let times = if text_length(&left).is_some() { &right } else { &left };
            let limit = LONGEST_TEXT / length.max(1);
            if *times > Val::from(limit) && matches!(times, Val::Num(_)) {
                Err(jaq_core::Error::str("the product is a text of more than 16 MiB"))
            } else {
                left * right
            }
        }
        _ => left * right,
    })
}

fn text_length(value: &Val) -> Option<usize> {
    match value {
        Val::TStr(bytes) | Val::BStr(bytes) => Some(bytes.len()),
        _ => None,
    }
}

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
