//! What a process and the machine used, as the kernel tells.

pub mod cpu;
