//! What an answer means for a call of a run.
//!
//! Owns: which answers are read and checked whole, and the verdict. Never does: find out whose
//! answer it is.

use crate::mcp::message::Raw;
use crate::mcp::repeat::answer;
use crate::model::{Fault, Phase};
use crate::provider::repeat::{Inspection, Verdict};

/// How much of what a tool said is kept, in characters.
const WORDS: usize = 300;

/// Judges the answers of one run.
pub(super) struct Judge {
    server: String,
    inspection: Option<Inspection>,
    answers: u64,
}

impl Judge {
    /// Judges for `server`, and has `inspection` done.
    pub(super) fn new(server: &str, inspection: Option<Inspection>) -> Self {
        Self { server: server.to_owned(), inspection, answers: 0 }
    }

    /// The server.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// The fault with the server's name.
    pub(super) fn named(&self, fault: Fault) -> Fault {
        match fault.at_phase() {
            Some(_) => fault.server(&self.server),
            None => fault.server(&self.server).phase(Phase::Call),
        }
    }

    /// The verdict on an answer; a `plain` one is known to be a result that is no error, and is
    /// `read` only when it is inspected.
    pub(super) fn judge(
        &mut self,
        plain: bool,
        read: impl FnOnce() -> Result<Raw, Fault>,
    ) -> Verdict {
        let turn = self.answers;
        self.answers += 1;
        let inspection =
            self.inspection.as_ref().filter(|each| turn.is_multiple_of(each.every.max(1)));
        if plain && inspection.is_none() {
            return Verdict::Ok;
        }
        let failed = |fault: Fault| Verdict::Failed(Box::new(self.named(fault)));
        let result = match answer::whole(read()) {
            Ok(result) => result,
            Err(fault) => return failed(fault),
        };
        if let Some(fault) = inspection.and_then(|each| each.inspector.inspect(&result)) {
            return failed(fault);
        }
        if result.success {
            return Verdict::Ok;
        }
        let words = result.fault.as_ref().map_or("the tool said no", Fault::message);
        Verdict::No(match words.char_indices().nth(WORDS) {
            // The cut shows, also to whoever looks for secrets beside it.
            Some((at, _)) => format!("{}…", words.get(..at).unwrap_or_default()).into(),
            None => words.into(),
        })
    }
}
