//! Classifying the answer to a benchmark call.

use crate::mcp::message::RawJson;
use crate::mcp::repeat::answer;
use crate::model::{Error, ErrorPhase};
use crate::provider::load::{AnswerSampler, Inspection, LoadOutcome, tool_error};

/// Judges the answers of one run.
pub(super) struct ResponseClassifier {
    server: String,
    sampler: AnswerSampler,
}

impl ResponseClassifier {
    /// Judges for `with_server`, and has `inspection` done.
    pub(super) fn new(server: &str, inspection: Option<Inspection>) -> Self {
        Self { server: server.to_owned(), sampler: AnswerSampler::new(inspection) }
    }

    /// The name of the server, for warnings and errors.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn with_server(&self, error: Error) -> Error {
        match error.phase() {
            Some(_) => error.with_server(&self.server),
            None => error.with_server(&self.server).with_phase(ErrorPhase::Call),
        }
    }

    /// The verdict on an answer; a `plain` one is known to be a result that is no error, and is
    /// `read` only when it is inspected.
    pub(super) fn classify(
        &mut self,
        plain: bool,
        read: impl FnOnce() -> Result<RawJson, Error>,
    ) -> LoadOutcome {
        let inspection = self.sampler.sample().cloned();
        if plain && inspection.is_none() {
            return LoadOutcome::Ok;
        }
        let failed = |error: Error| LoadOutcome::Failed(Box::new(self.with_server(error)));
        let result = match answer::read_result(read()) {
            Ok(result) => result,
            Err(error) => return failed(error),
        };
        if let Some(error) = inspection.and_then(|each| each.inspector.inspect(&result)) {
            return failed(error);
        }
        if result.success {
            return LoadOutcome::Ok;
        }
        tool_error(&result)
    }
}
