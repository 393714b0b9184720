//! Stand-in for the demo server.
use crate::model::Fault;

/// Serves until the client hangs up.
///
/// # Errors
/// When the streams break.
pub async fn run() -> Result<(), Fault> {
    Ok(())
}
