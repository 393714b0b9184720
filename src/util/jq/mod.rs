//! jq expressions over JSON, inside bounds.
//!
//! Owns: compiling and running a filter without access to files, variables of the process or the
//! exit of the program, with a limit on steps, time, stack and results. Never does: print.
//!
//! The engine (jaq) has no limits of its own, so they are woven into the program before it is
//! compiled: wherever a filter can loop — a definition, a step of a fold, the right side of a
//! pipe, an argument, an element of a list — a native filter counts one step and ends the run
//! when the budget is spent. It ends it the way `halt` would, which `try` cannot catch.

mod budget;
mod instrument;
mod value;

use std::sync::OnceLock;

use jaq_core::load::lex::Lexer;
use jaq_core::load::parse::{Def, Parser, Term};
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars};
use serde_json::Value;

use budget::{JqBudget, JqEngine, JqLimits, JqRunData};
use instrument::InstrumentedDef;

/// The longest filter, in bytes.
const LONGEST_FILTER: usize = 8 * 1024;
/// The most results.
const MOST_RESULTS: usize = 10_000;
/// The stack of the thread a query runs on. Only what is used is ever touched; dropping a value
/// that the filter nested one level with each of its steps needs the most.
const STACK: usize = 512 << 20;

/// Definitions that would reach out of the query.
const FORBIDDEN_DEFINITIONS: [&str; 4] = ["halt", "halt_error", "env", "input_line_number"];

/// Runs a jq expression over a value and returns its results.
///
/// A filter may take 2 million steps and 5 seconds, give 10,000 results, and nest its results 128
/// levels deep. It sees its input and nothing else: no modules, no `env`, `input` or `halt`.
///
/// # Errors
/// A message for people: where the filter is wrong, what it ran into, or which limit it passed.
pub fn query(filter: &str, input: &Value) -> Result<Vec<Value>, String> {
    query_within(filter, input, &JqLimits::default())
}

fn query_within(filter: &str, input: &Value, limits: &JqLimits) -> Result<Vec<Value>, String> {
    if filter.len() > LONGEST_FILTER {
        return Err(format!("the filter is longer than {LONGEST_FILTER} bytes"));
    }
    if filter.trim().is_empty() {
        return Err("the filter is empty: '.' stands for the whole input".to_owned());
    }
    // A thread of its own makes the depth of recursion a known quantity. A panic of the engine
    // costs the query and not the program.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("jq".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, || run(filter, input, limits))
            .map_err(|error| format!("no thread for the filter: {error}"))?
            .join()
            .unwrap_or_else(|_| Err("the filter made the jq engine fail".to_owned()))
    })
}

fn run(filter: &str, input: &Value, limits: &JqLimits) -> Result<Vec<Value>, String> {
    let input = value::from_json(input);
    let main = Def { name: MAIN, args: Vec::new(), body: parse(filter)? };
    let arena = Arena::default();
    let modules = Loader::new(with_prelude(instrument::definition(main)))
        .load(&arena, File { code: MAIN, path: () })
        .map_err(|_| "the filter cannot be loaded".to_owned())?;
    let natives = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, _, _)| !FORBIDDEN_DEFINITIONS.contains(name))
        .chain(budget::natives());
    let program = Compiler::default().with_funs(natives).compile(modules).map_err(|errors| {
        let names = errors.iter().flat_map(|(_, undefined)| undefined).map(|(name, what)| {
            let name = name.trim_start_matches('!');
            format!("there is no {} '{name}'", what.as_str())
        });
        names.collect::<Vec<_>>().join("; ")
    })?;

    let budget = JqBudget::start(limits);
    let context =
        Ctx::<JqEngine>::new(JqRunData { lut: &program.lut, budget: &budget }, Vars::new([]));
    let mut results = Vec::new();
    for item in program.id.run((context, input)) {
        if let Some(reason) = budget.exceeded() {
            return Err(reason);
        }
        let item = jaq_core::unwrap_valr(item).map_err(|error| error.to_string())?;
        if results.len() == MOST_RESULTS {
            return Err(format!("the filter gives more than {MOST_RESULTS} results"));
        }
        results.push(value::to_json(&item)?);
    }
    match budget.exceeded() {
        Some(reason) => Err(reason),
        None => Ok(results),
    }
}

/// The name under which the user's filter is defined; no filter can spell it.
const MAIN: &str = "toolhost_main_filter";

/// A definition, after those of jq's own that it needs. Compiling all of them would cost most of
/// the time of a small query.
fn with_prelude(main: InstrumentedDef<'_>) -> Vec<Def<&str>> {
    let mut wanted = main.calls;
    let mut needed = vec![main.definition];
    // A definition calls itself or earlier ones only, so one pass from the end finds them all.
    for woven in prelude().iter().rev() {
        if wanted.contains(woven.definition.name) {
            wanted.extend(&woven.calls);
            needed.push(woven.definition.clone());
        }
    }
    needed.reverse();
    needed
}

/// jq's own definitions, parsed and woven once for the whole program.
fn prelude() -> &'static [InstrumentedDef<'static>] {
    static PRELUDE: OnceLock<Vec<InstrumentedDef<'static>>> = OnceLock::new();
    PRELUDE.get_or_init(|| {
        jaq_core::defs()
            .chain(jaq_std::defs())
            .chain(jaq_json::defs())
            .filter(|definition| !FORBIDDEN_DEFINITIONS.contains(&definition.name))
            .map(instrument::definition)
            .collect()
    })
}

fn parse(filter: &str) -> Result<Term<&str>, String> {
    let at = |part: &str| match part.as_ptr().addr().checked_sub(filter.as_ptr().addr()) {
        Some(offset) if offset < filter.len() => {
            let before = filter.get(..offset).unwrap_or_default();
            format!("at column {}", before.chars().count() + 1)
        }
        _ => "at the end".to_owned(),
    };
    let tokens = Lexer::new(filter).lex().map_err(|errors| match errors.first() {
        Some((expected, found)) => {
            format!("the filter is wrong {}: expected {}", at(found), expected.as_str())
        }
        None => "the filter is wrong".to_owned(),
    })?;
    let result = Parser::new(&tokens).parse(Parser::term);
    result.map_err(|errors| match errors.first() {
        Some((expected, found)) => {
            let spot = found.map_or_else(|| "at the end".to_owned(), |token| at(token.as_str()));
            format!("the filter is wrong {spot}: expected {}", expected.as_str())
        }
        None => "the filter is wrong".to_owned(),
    })
}

#[cfg(test)]
mod tests;
