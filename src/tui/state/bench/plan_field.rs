//! The entries of the plan form, with their titles and options.

/// An entry of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanField {
    ToolA,
    ArgumentsA,
    LinesA,
    Mix,
    ToolB,
    ArgumentsB,
    Rounds,
    Model,
    Rate,
    Arrivals,
    InFlight,
    StepErrorLimit,
    Calls,
    Duration,
    WarmUp,
    Timeout,
    FailIf,
    Baseline,
    MaxRegression,
    Seed,
    AllowWrites,
}

impl PlanField {
    pub(super) const ALL: [Self; 21] = [
        Self::ToolA,
        Self::ArgumentsA,
        Self::LinesA,
        Self::Mix,
        Self::ToolB,
        Self::ArgumentsB,
        Self::Rounds,
        Self::Model,
        Self::Rate,
        Self::Arrivals,
        Self::InFlight,
        Self::StepErrorLimit,
        Self::Calls,
        Self::Duration,
        Self::WarmUp,
        Self::Timeout,
        Self::FailIf,
        Self::Baseline,
        Self::MaxRegression,
        Self::Seed,
        Self::AllowWrites,
    ];

    /// The label in the form.
    pub fn title(self) -> &'static str {
        match self {
            Self::ToolA => "A",
            Self::ToolB => "B",
            Self::ArgumentsA | Self::ArgumentsB => "arguments",
            Self::LinesA => "lines of",
            Self::Mix => "mix",
            Self::Arrivals => "arrivals",
            Self::Rounds => "rounds",
            Self::Model => "model",
            Self::Rate => "rate",
            Self::InFlight => "in flight",
            Self::StepErrorLimit => "stop above",
            Self::Calls => "calls",
            Self::Duration => "duration",
            Self::WarmUp => "warm-up",
            Self::Timeout => "timeout",
            Self::FailIf => "fail if",
            Self::Baseline => "baseline",
            Self::MaxRegression => "worse by",
            Self::Seed => "seed",
            Self::AllowWrites => "writes",
        }
    }

    /// Whether it is chosen of two instead of written.
    pub fn is_choice(self) -> bool {
        matches!(self, Self::Model | Self::Arrivals | Self::AllowWrites)
    }

    /// The option of the command line.
    pub(super) fn option(self) -> Option<&'static str> {
        match self {
            Self::LinesA => Some("--args-lines"),
            Self::Rounds => Some("--rounds"),
            Self::Rate => Some("--rate"),
            Self::InFlight => Some("-c"),
            Self::StepErrorLimit => Some("--step-error-limit"),
            Self::Calls => Some("-n"),
            Self::Duration => Some("--duration"),
            Self::WarmUp => Some("--warmup"),
            Self::Timeout => Some("--timeout"),
            Self::Baseline => Some("--baseline"),
            Self::MaxRegression => Some("--max-regression"),
            Self::Seed => Some("--seed"),
            _ => None,
        }
    }
}
