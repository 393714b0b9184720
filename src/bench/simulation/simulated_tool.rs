//! Simulated tools and the distributions of their delays.

use std::time::Duration;

use crate::host::load::LoadOutcome;
use crate::model::{Error, ErrorKind};

/// How long a tool works on a call.
#[derive(Debug, Clone)]
pub(crate) enum DelayLaw {
    /// Always as long.
    Fixed(Duration),
    /// The first with this chance, else the second.
    Bimodal(Duration, Duration, f64),
    Exponential(Duration),
}

/// A tool that does not exist.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedTool {
    law: DelayLaw,
    random: fastrand::Rng,
    /// When each of its servers is free, when it has only so many.
    servers: Option<Vec<Duration>>,
    /// It works on nothing for the second in every stretch of the first.
    stall: Option<(Duration, Duration)>,
    /// With this chance a call fails: it is refused, times out, or breaks the protocol.
    failure_chance: f64,
    /// It dies after so many answers, each time it was started.
    answers_per_start: Option<u64>,
    left: Option<u64>,
    starts: u64,
}

impl SimulatedTool {
    pub(crate) fn new(law: DelayLaw, seed: u64) -> Self {
        Self {
            law,
            random: fastrand::Rng::with_seed(seed),
            servers: None,
            stall: None,
            failure_chance: 0.0,
            answers_per_start: None,
            left: None,
            starts: u64::MAX,
        }
    }

    /// Limits how many calls are served at once; others wait.
    pub(crate) fn servers(self, servers: usize) -> Self {
        Self { servers: Some(vec![Duration::ZERO; servers]), ..self }
    }

    /// At the beginning of every stretch but the first it stands still for a while.
    pub(crate) fn stalls(self, every: Duration, lasting: Duration) -> Self {
        Self { stall: Some((every, lasting)), ..self }
    }

    pub(crate) fn fails(self, failing: f64) -> Self {
        Self { failure_chance: failing, ..self }
    }

    /// Makes the tool die after `life` answers; it can be started `starts` times.
    pub(crate) fn lives(self, life: u64, starts: u64) -> Self {
        Self { answers_per_start: Some(life), starts, ..self }
    }

    pub(super) fn starts(&mut self) -> Result<(), Error> {
        if self.starts == 0 {
            return Err(Error::unreachable("it does not start any more"));
        }
        self.starts -= 1;
        self.left = self.answers_per_start;
        Ok(())
    }

    pub(super) fn answered(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }

    /// Whether it has lived its life.
    pub(super) fn has_died(&self) -> bool {
        self.left == Some(0)
    }

    /// How long a call takes that comes now, and what becomes of it.
    pub(super) fn answer(&mut self, now: Duration) -> (Duration, LoadOutcome) {
        let works = match self.law {
            DelayLaw::Fixed(time) => time,
            DelayLaw::Bimodal(first, second, chance) => {
                if self.random.f64() < chance {
                    first
                } else {
                    second
                }
            }
            DelayLaw::Exponential(mean) => mean.mul_f64(-(1.0 - self.random.f64()).ln()),
        };
        let mut begins = now;
        let free = self.servers.as_mut().and_then(|all| all.iter_mut().min());
        if let Some(free) = &free {
            begins = begins.max(**free);
        }
        if let Some((every, lasting)) = self.stall {
            let into = Duration::from_nanos((begins.as_nanos() % every.as_nanos()) as u64);
            if begins >= every && into < lasting {
                begins += lasting - into;
            }
        }
        let ends = begins + works;
        if let Some(free) = free {
            *free = ends;
        }
        let verdict = if self.random.f64() < self.failure_chance {
            match self.random.u8(0..3) {
                0 => LoadOutcome::ToolError("no".into()),
                1 => LoadOutcome::Failed(Box::new(Error::new(ErrorKind::Timeout, "too late"))),
                _ => LoadOutcome::Failed(Box::new(Error::protocol("nonsense"))),
            }
        } else {
            LoadOutcome::Ok
        };
        (ends - now, verdict)
    }
}
