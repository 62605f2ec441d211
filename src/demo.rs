//! stub
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct DemoError;
pub async fn run(
    _a: &crate::cli::demo::DemoArgs,
    _t: tokio_util::sync::CancellationToken,
) -> Result<(), DemoError> {
    Ok(())
}
