//! stub
#[derive(clap::Args, Debug)]
pub struct SimulateArgs {}
