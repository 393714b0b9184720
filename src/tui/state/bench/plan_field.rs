//! The entries of the plan form, with their titles and options.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanField {
    ToolA,
    ArgumentsA,
    ToolB,
    InFlight,
    Rate,
    Calls,
    Duration,
}

impl PlanField {
    /// In the order of the form.
    pub const ALL: [Self; 7] = [
        Self::ToolA,
        Self::ArgumentsA,
        Self::ToolB,
        Self::InFlight,
        Self::Rate,
        Self::Calls,
        Self::Duration,
    ];

    /// The label in the form.
    pub fn title(self) -> &'static str {
        match self {
            Self::ToolA => "A",
            Self::ArgumentsA => "arguments",
            Self::ToolB => "B",
            Self::InFlight => "in flight",
            Self::Rate => "rate",
            Self::Calls => "calls",
            Self::Duration => "duration",
        }
    }

    pub(super) fn option(self) -> Option<&'static str> {
        match self {
            Self::ToolA | Self::ArgumentsA => None,
            Self::ToolB => Some("--vs"),
            Self::InFlight => Some("-c"),
            Self::Rate => Some("--rate"),
            Self::Calls => Some("-n"),
            Self::Duration => Some("--duration"),
        }
    }
}
