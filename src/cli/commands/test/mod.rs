//! `toolhost test`: calls, and whether they do what is expected of them.

mod expect;
mod report;

use super::prelude::*;
use crate::cli::answers::AnswerRules;
use crate::cli::save;
use crate::config::suite::{Snapshots, Suite, TestCase};
use crate::host::content::filter_input;
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::{Diagnostic, JsonObject};
use crate::util::units::millis;
use crate::util::{jq, pattern};

pub use report::TestReport;
use report::{CaseReport, Part};

/// How long cleanup may take after a signal.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Run tests: calls of tools, with what is expected of them.
///
/// Tests run one after the other. They are calls like any other: a tool that asks before it is called
/// asks here too. Exits with 8 when an expectation is not met.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
#[command(arg = formats::option(formats::REPORT), arg = ad_hoc::command())]
pub struct TestArgs {
    /// Files of tests
    #[arg(required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Only tests whose names match this pattern (* and ?)
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,
    /// Save results as snapshots instead of comparing them
    #[arg(long)]
    pub update: bool,
    /// Stop after the first test that fails
    #[arg(long)]
    pub fail_fast: bool,
    /// Write a report in JUnit's XML
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Answer servers' questions from a file of rules, or with 'defaults' or 'decline'
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub answers: Option<PathBuf>,
    /// Approve all calls without asking
    #[arg(short, long, conflicts_with = "ask_all")]
    pub yes: bool,
}

const EXAMPLE: &str = "\
A file of tests (its keys: toolhost config schema tests):
  tests:
    - tool: calculator
      args: {expression: 6*7}
      expect: {equals: 42, latency: {p95: 50ms}}
    - name: dividing by zero
      tool: calculator
      args: {expression: 1/0}
      expect: {error: tool, contains: zero}

Examples:
  toolhost test smoke.yaml
  toolhost test smoke.yaml --update                save the results of tests with 'snapshot: true'
  toolhost test smoke.yaml -- toolhost replay session.jsonl
  toolhost history save last --as-test smoke.yaml  add a test from a call";

pub async fn run(args: &TestArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    if let Some(answers) = &args.answers {
        context.set_answers(AnswerRules::read(answers)?);
    }
    if let Some(path) = &args.junit {
        save::check_writable(&context.environment.cwd().join(path))
            .map_err(|error| error.context("--junit"))?;
    }
    let mut suites = Vec::new();
    let mut problems = Vec::new();
    for path in &args.files {
        match Suite::read(path) {
            Ok(suite) => suites.push((path, suite, Snapshots::of_suite(path)?)),
            Err(wrong) => problems.extend(wrong),
        }
    }
    refuse(problems)?;
    if let Some(only) = &args.only {
        let tests = suites.iter().flat_map(|(_, suite, _)| &suite.tests);
        require_match(only, tests.map(|case| case.name.as_str()).collect())?;
    }
    let names: Vec<String> = suites
        .iter()
        .flat_map(|(_, suite, _)| suite.cases())
        .map(|case| case.tool.clone())
        .collect();
    let assembly =
        context.assemble_attached(StartScope::Named(&names, &[]), "toolhost test").await?;
    context.request_grace_period(GRACE_PERIOD);
    let is_live = format == Format::Text;
    let mut report = TestReport::default();
    for (path, suite, mut snapshots) in suites {
        if is_live && args.files.len() > 1 {
            context.output.page(&Line::styled(Role::Title, path.display().to_string()).into())?;
        }
        let mut run = SuiteRun {
            args,
            context,
            assembly: &assembly,
            file: path,
            snapshots: &mut snapshots,
            results: JsonObject::new(),
            report: &mut report,
            is_live,
        };
        run.all(&suite).await?;
        if args.update {
            if args.only.is_none() {
                snapshots.retain(&suite);
            }
            snapshots.save()?;
        }
    }
    if let Some(path) = &args.junit {
        save::replace(path, report.junit().as_bytes())
            .map_err(|why| Error::internal(format!("cannot write {}: {why}", path.display())))?;
    }
    context.output.report(format, &report, || report.summary())?;
    conclude(report.failure())
}

fn require_match(only: &str, names: Vec<&str>) -> Result<(), Error> {
    if names.iter().any(|name| pattern::matches(only, name)) {
        return Ok(());
    }
    Err(Error::usage(format!("no test matches '{only}'"))
        .with_details(names.into_iter().map(str::to_owned))
        .with_hint("these are the tests; a pattern may have * and ?"))
}

fn refuse(problems: Vec<Diagnostic>) -> Result<(), Error> {
    let mut problems = problems.into_iter();
    let Some(mut first) = problems.next() else { return Ok(()) };
    let with_hint = |message: &str, hint: Option<String>| match hint {
        Some(hint) => format!("{message} ({hint})"),
        None => message.to_owned(),
    };
    let others = problems.map(|problem| {
        let place = problem.location.as_ref().map(present::caret::location);
        let message = with_hint(&problem.message, problem.hint);
        format!("{}: {message}", place.unwrap_or_default())
    });
    let others: Vec<String> = others.collect();
    // Below the others, the hint would seem to be about the last of them.
    if !others.is_empty() {
        first.message = with_hint(&first.message, first.hint.take());
    }
    Err(Error::of_diagnostic(ErrorKind::Config, first).with_details(others))
}

struct SuiteRun<'a> {
    args: &'a TestArgs,
    context: &'a CommandContext,
    assembly: &'a Assembly,
    file: &'a Path,
    snapshots: &'a mut Snapshots,
    /// What earlier calls gave, by their names.
    results: JsonObject,
    report: &'a mut TestReport,
    is_live: bool,
}

impl SuiteRun<'_> {
    async fn all(&mut self, suite: &Suite) -> CommandResult {
        let mut may_run = true;
        for case in &suite.setup {
            may_run = may_run && self.one(Part::Setup, case, may_run).await?;
        }
        for case in &suite.tests {
            let is_chosen =
                self.args.only.as_ref().is_none_or(|only| pattern::matches(only, &case.name));
            if is_chosen {
                let passed = self.one(Part::Test, case, may_run).await?;
                may_run = may_run && (passed || !self.args.fail_fast);
            }
        }
        for case in &suite.cleanup {
            self.one(Part::Cleanup, case, true).await?;
        }
        Ok(())
    }

    /// Makes one call and checks it; whether it passed.
    async fn one(
        &mut self,
        part: Part,
        case: &TestCase,
        may_run: bool,
    ) -> Result<bool, CommandError> {
        let is_stopped = part != Part::Cleanup && self.context.cancel.is_cancelled();
        let mut report = CaseReport::new(self.file, part, case);
        if may_run && !is_stopped {
            self.perform(case, &mut report).await;
        }
        let passed = report.passed();
        if self.is_live {
            self.context.output.page(&report.page(self.context.output.verbosity() > 0))?;
        }
        self.report.add(report);
        Ok(passed)
    }

    async fn perform(&mut self, case: &TestCase, report: &mut CaseReport) {
        report.ran = true;
        let arguments = match self.arguments(case) {
            Ok(arguments) => arguments,
            Err(message) => return report.failures.push(message.into()),
        };
        let mut request = CallRequest::new(&case.tool, CallArguments::Object(arguments.clone()));
        request.servers.clone_from(&case.servers);
        request.timeout = case.timeout;
        request.assume_yes = self.args.yes;
        request.cancel = match report.part {
            Part::Cleanup => self.context.abort.clone(),
            Part::Setup | Part::Test => self.context.cancel.clone(),
        };
        let host = &self.assembly.host;
        let outcome = host.call(request).await;
        if let Ok(outcome) = &outcome {
            report.call_id = Some(outcome.metadata.call_id.0.to_string());
            report.duration_ms = Some(millis(outcome.metadata.duration));
        }
        let result = outcome.as_ref().ok().and_then(|outcome| outcome.result.as_ref().ok());
        let result = result.map_or(Value::Null, filter_input);
        let error = outcome.as_ref().map_or_else(Some, CallOutcome::error);
        let expect = &case.expect;
        report.failures = expect::failures(expect, &result, error).await;
        if expect.snapshot == Some(true) && report.failures.is_empty() {
            let update = self.args.update;
            let failure = expect::snapshot(expect, &case.name, &result, self.snapshots, update);
            report.failures.extend(failure);
        }
        if let Some(limits) = expect.latency.as_ref().filter(|_| report.failures.is_empty()) {
            let cancel = &self.context.cancel;
            let measured =
                expect::latency(limits, case, arguments, self.args.yes, host, cancel).await;
            report.failures =
                measured.unwrap_or_else(|error| vec![error.message().to_owned().into()]);
        }
        self.results.insert(case.name.clone(), result);
    }

    fn arguments(&self, case: &TestCase) -> Result<JsonObject, String> {
        let Value::Object(mut arguments) = case.args.clone() else {
            return Err("the arguments are no object".to_owned());
        };
        let Some(expression) = &case.args_jq else { return Ok(arguments) };
        let made = jq::query(expression, &Value::Object(self.results.clone()))
            .map_err(|why| format!("args_jq: {why}"))?;
        match made.as_slice() {
            [Value::Object(more)] => {
                arguments.extend(more.clone());
                Ok(arguments)
            }
            _ => Err("args_jq: the expression does not give one object".to_owned()),
        }
    }
}
