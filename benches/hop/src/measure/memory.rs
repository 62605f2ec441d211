//! Memory of processes.

use std::fs;

use anyhow::{Context as _, Result};

/// Memory of some processes together, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Pages in memory; what processes share counts for each.
    pub rss: u64,
    /// Pages in memory; what processes share counts in parts.
    pub pss: u64,
}

/// Reads it.
///
/// # Errors
///
/// A process is gone, or belongs to somebody else.
pub fn of_processes(ids: &[u32]) -> Result<Memory> {
    let mut memory = Memory::default();
    for id in ids {
        let file = format!("/proc/{id}/smaps_rollup");
        let text = fs::read_to_string(&file).context(file)?;
        memory.rss += bytes(&text, "Rss:").context("no Rss")?;
        memory.pss += bytes(&text, "Pss:").context("no Pss")?;
    }
    Ok(memory)
}

fn bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_is_seen() {
        let own = [std::process::id()];
        let before = of_processes(&own).unwrap();
        let used = std::hint::black_box(vec![1_u8; 16 << 20]);
        let after = of_processes(&own).unwrap();
        assert!(after.pss - before.pss >= 15 << 20);
        assert!(after.rss >= after.pss);
        drop(used);
    }
}
