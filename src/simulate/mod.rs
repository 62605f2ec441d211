//! (stub)
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct SimulateError;
impl SimulateError {
    pub fn is_usage(&self) -> bool {
        true
    }
}
pub async fn run(_a: crate::cli::simulate::SimulateArgs) -> Result<(), SimulateError> {
    Ok(())
}
