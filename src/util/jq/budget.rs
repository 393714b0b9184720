//! The step and memory budget of a filter, and the native filters that count against it.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Cv, DataT, Exn, Lut, ValXs, data::HasLut};
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
