//! Everything concluded from a run: comparisons, thresholds, bottlenecks, caveats.

use super::baseline::{self, BaselineChange, BaselineReport, SavedRun};
use super::bottlenecks;
use super::compare::{self, TargetComparison};
use super::environment::BenchEnvironment;
use super::report::BenchReport;
use super::threshold::{self, Threshold, ThresholdResult};
use crate::model::{Error, ErrorKind};

/// What a run is held to.
#[derive(Debug, Clone, Default)]
pub struct AcceptanceCriteria {
    /// The thresholds that fail the run.
    pub thresholds: Vec<Threshold>,
    /// The run that it is compared with.
    pub baseline: Option<SavedRun>,
    /// The share by which it may be worse than that: 0.1 for 10%.
    pub max_regression: Option<f64>,
}

/// What was concluded.
#[derive(Debug, Clone, Default)]
pub struct BenchFindings {
    /// Every other target against the first one, when they took turns.
    pub comparisons: Vec<TargetComparison>,
    /// The comparison with the saved run.
    pub baseline: Option<BaselineReport>,
    /// The results of the thresholds.
    pub thresholds: Vec<ThresholdResult>,
    /// What limits the run, one sentence each.
    pub bottlenecks: Vec<String>,
    /// What a reader should know before believing the figures: those of the run, of the machine and
    /// of the comparisons.
    pub warnings: Vec<String>,
}

impl BenchFindings {
    /// Concludes what there is to conclude.
    pub fn conclude(
        report: &BenchReport,
        environment: &BenchEnvironment,
        demands: &AcceptanceCriteria,
    ) -> Self {
        let comparisons = compare::compare(report);
        let baseline = demands.baseline.as_ref().map(|saved| {
            baseline::compare_with_baseline(saved, report, environment, demands.max_regression)
        });
        let mut warnings = report.warnings.clone();
        warnings.extend(environment.warnings());
        warnings.extend(comparisons.iter().flat_map(|one| one.warnings.clone()));
        warnings.extend(baseline.iter().flat_map(|one| one.warnings.clone()));
        Self {
            comparisons,
            baseline,
            thresholds: threshold::judge(&demands.thresholds, report),
            bottlenecks: bottlenecks::find(report),
            warnings,
        }
    }

    /// Why the run failed what was asked of it (exit code 8); `None` when it did not.
    pub fn failure(&self) -> Option<Error> {
        let mut lines: Vec<String> = self
            .thresholds
            .iter()
            .flat_map(|judged| &judged.lines)
            .filter(|line| line.failed)
            .map(|line| line.text.clone())
            .collect();
        let failed = self.thresholds.iter().filter(|judged| judged.failed()).count();
        let mut what = Vec::new();
        if failed > 0 {
            what.push(format!("{failed} of {} thresholds", self.thresholds.len()));
        }
        if let Some(baseline) = self.baseline.as_ref().filter(|baseline| baseline.failed()) {
            what.push(format!("the comparison with {}", baseline.file));
            let gates = baseline.targets.iter().flat_map(BaselineChange::lines);
            lines.extend(gates.filter(|line| line.ends_with(": FAIL")));
        }
        if what.is_empty() {
            return None;
        }
        Some(
            Error::new(ErrorKind::Check, format!("failed: {}", what.join(" and ")))
                .with_details(lines),
        )
    }
}
