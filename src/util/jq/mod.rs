//! jq expressions over JSON, within bounds.
//!
//! Owns: compiling and running a filter without access to files, variables of the process or the
//! exit of the program, with a limit on steps, time, stack and results. Never does: print.
//!
//! The engine (jaq) has no built-in limits, so they are inserted into the program before it is
//! compiled: wherever a filter can loop — a definition, a step of a fold, the right side of a pipe,
//! an argument, an element of a list — a native filter counts one step and ends the run when the
//! budget is spent. It ends it the way `halt` would, which `try` cannot catch.
//! Numbers keep their digits.

use std::sync::OnceLock;
use std::time::Duration;

use jaq_core::load::lex::Lexer;
use jaq_core::load::parse::{Def, Parser, Term};
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars};
use jaq_json::{Num, Val, read};
use serde_json::Value;
use thiserror::Error;

use budget::{InstrumentedDef, JqBudget, JqEngine, JqLimits, JqRunData};

pub mod budget;

const LONGEST_FILTER: usize = 8 * 1024;
const MOST_RESULTS: usize = 10_000;
/// The stack of the thread a query runs on. Only what is used is ever touched; dropping a value
/// that the filter nested one level with each of its steps needs the most.
const STACK: usize = 512 << 20;

const FORBIDDEN_DEFINITIONS: [&str; 4] = ["halt", "halt_error", "env", "input_line_number"];

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JqError {
    #[error("the filter is longer than {LONGEST_FILTER} bytes")]
    FilterTooLong,
    #[error("the filter is empty: '.' stands for the whole input")]
    EmptyFilter,
    /// The text is not a jq expression.
    #[error("the filter is invalid{0}")]
    Syntax(String),
    /// The filter names functions or variables that do not exist, each with its sort.
    #[error("{0}")]
    Undefined(String),
    /// The engine refuses the definitions that the filter needs.
    #[error("the filter cannot be loaded")]
    NotLoaded,
    /// The filter raised an error: the engine's message.
    #[error("{0}")]
    Runtime(String),
    #[error("the filter takes more than {0} steps")]
    TooManySteps(u64),
    /// The filter needs more stack than it is given.
    #[error("the filter recurses too deeply")]
    TooDeep,
    /// The filter takes more time than this.
    #[error("the filter takes longer than {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("the filter produces more than {MOST_RESULTS} results")]
    TooManyResults,
    #[error("the result nests more than {} levels deep", DEEPEST)]
    ResultTooDeep,
    #[error("the result has a key that is not text")]
    KeyIsNotText,
    #[error("no thread for the filter: {0}")]
    NoThread(std::io::ErrorKind),
    /// The engine itself panicked; only the query is lost.
    #[error("the filter made the jq engine fail")]
    EnginePanicked,
}

/// Runs a jq expression over a value and returns its results.
///
/// A filter may take 2 million steps and 5 seconds, give 10,000 results, and nest its results 128
/// levels deep. It sees its input and nothing else: no modules, no `env`, `input` or `halt`.
pub fn query(filter: &str, input: &Value) -> Result<Vec<Value>, JqError> {
    query_within(filter, input, &JqLimits::default())
}

/// Whether an expression can be read: it is compiled and never run.
pub fn check(filter: &str) -> Result<(), JqError> {
    on_own_thread(filter, || compile(filter).map(drop))
}

pub fn query_within(filter: &str, input: &Value, limits: &JqLimits) -> Result<Vec<Value>, JqError> {
    on_own_thread(filter, || run(filter, input, limits))
}

/// A separate thread makes the recursion depth a known quantity. A panic of the engine costs the
/// query and not the program.
fn on_own_thread<T: Send>(
    filter: &str,
    work: impl FnOnce() -> Result<T, JqError> + Send,
) -> Result<T, JqError> {
    if filter.len() > LONGEST_FILTER {
        return Err(JqError::FilterTooLong);
    }
    if filter.trim().is_empty() {
        return Err(JqError::EmptyFilter);
    }
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("jq".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| JqError::NoThread(error.kind()))?
            .join()
            .unwrap_or(Err(JqError::EnginePanicked))
    })
}

fn compile(filter: &str) -> Result<Filter<JqEngine>, JqError> {
    let main = Def { name: MAIN, args: Vec::new(), body: parse(filter)? };
    let arena = Arena::default();
    let modules = Loader::new(with_prelude(budget::definition(main)))
        .load(&arena, File { code: MAIN, path: () })
        .map_err(|_| JqError::NotLoaded)?;
    let natives = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, _, _)| !FORBIDDEN_DEFINITIONS.contains(name))
        .chain(budget::natives());
    Compiler::default().with_funs(natives).compile(modules).map_err(|errors| {
        let names = errors.iter().flat_map(|(_, undefined)| undefined);
        let messages = names.map(|(name, sort)| {
            format!("there is no {} '{}'", sort.as_str(), name.trim_start_matches('!'))
        });
        JqError::Undefined(messages.collect::<Vec<_>>().join("; "))
    })
}

fn run(filter: &str, input: &Value, limits: &JqLimits) -> Result<Vec<Value>, JqError> {
    let input = from_json(input)?;
    let program = compile(filter)?;
    let budget = JqBudget::start(limits);
    let context =
        Ctx::<JqEngine>::new(JqRunData { lut: &program.lut, budget: &budget }, Vars::new([]));
    let mut results = Vec::new();
    for item in program.id.run((context, input)) {
        if let Some(reason) = budget.exceeded() {
            return Err(reason);
        }
        let item =
            jaq_core::unwrap_valr(item).map_err(|error| JqError::Runtime(error.to_string()))?;
        if results.len() == MOST_RESULTS {
            return Err(JqError::TooManyResults);
        }
        results.push(to_json(&item)?);
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
    let mut calls = main.calls;
    let mut needed = vec![main.definition];
    // A definition calls itself or earlier ones only, so one pass from the end finds them all.
    for woven in prelude().iter().rev() {
        if calls.contains(woven.definition.name) {
            calls.extend(&woven.calls);
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
            .map(budget::definition)
            .collect()
    })
}

fn parse(filter: &str) -> Result<Term<&str>, JqError> {
    // Where it is wrong, as a column in characters from 1, and what was expected there.
    let syntax = |token: Option<&str>, expected: &str| {
        let offset = token
            .and_then(|part| part.as_ptr().addr().checked_sub(filter.as_ptr().addr()))
            .filter(|offset| *offset < filter.len());
        let before = offset.map(|offset| filter.get(..offset).unwrap_or_default());
        let place = before.map_or_else(
            || "the end".to_owned(),
            |before| format!("column {}", before.chars().count() + 1),
        );
        format!(" at {place}: expected {expected}")
    };
    let tokens = Lexer::new(filter).lex().map_err(|errors| {
        let first = errors.first().map(|(expected, token)| syntax(Some(token), expected.as_str()));
        JqError::Syntax(first.unwrap_or_default())
    })?;
    Parser::new(&tokens).parse(Parser::term).map_err(|errors| {
        let first = errors.first().map(|(expected, token)| {
            syntax(token.map(jaq_core::load::lex::Token::as_str), expected.as_str())
        });
        JqError::Syntax(first.unwrap_or_default())
    })
}

/// How deep a result may nest; what readers of JSON accept.
const DEEPEST: usize = 128;

/// A JSON value for the engine. The caller bounds its depth (every reader of JSON here does).
fn from_json(value: &Value) -> Result<Val, JqError> {
    read::parse_single(value.to_string().as_bytes())
        .map_err(|error| JqError::Runtime(error.to_string()))
}

/// A result as JSON. What JSON cannot say becomes what jq prints: `null` for not-a-number, the
/// largest float for infinity, replacement characters for bytes that are no text.
fn to_json(value: &Val) -> Result<Value, JqError> {
    convert(value, 0)
}

fn convert(value: &Val, depth: usize) -> Result<Value, JqError> {
    if depth > DEEPEST {
        return Err(JqError::ResultTooDeep);
    }
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(value) => Value::Bool(*value),
        Val::Num(value) => number(value),
        Val::TStr(bytes) | Val::BStr(bytes) => {
            Value::String(String::from_utf8_lossy(bytes).into_owned())
        }
        Val::Arr(items) => Value::Array(
            items.iter().map(|item| convert(item, depth + 1)).collect::<Result<_, _>>()?,
        ),
        Val::Obj(entries) => {
            let mut object = serde_json::Map::new();
            for (key, value) in entries.iter() {
                let Val::TStr(key) = key else {
                    return Err(JqError::KeyIsNotText);
                };
                object
                    .insert(String::from_utf8_lossy(key).into_owned(), convert(value, depth + 1)?);
            }
            Value::Object(object)
        }
    })
}

fn number(number: &Num) -> Value {
    let float = |value: f64| {
        let finite = value.clamp(f64::MIN, f64::MAX);
        serde_json::Number::from_f64(finite).map_or(Value::Null, Value::Number)
    };
    match number {
        Num::Int(value) => Value::from(*value),
        Num::Float(value) => float(*value),
        Num::BigInt(value) => parsed(&value.to_string()),
        Num::Dec(text) => parsed(text),
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests;
