//! What processes and the machine use, as the kernel tells.

pub mod cpu;
pub mod machine;
pub mod memory;
