//! Flags of `spectap serve` about the records file.

use std::path::PathBuf;

use clap::Args;

use crate::store::records::{Fsync, RecordsFormat};

/// Where, how and how much is recorded.
#[derive(Clone, Debug, Args)]
pub struct RecordsArgs {
    /// Write one JSON line per exchange on an inference route to this file. It holds numbers, names and ids only, and
    /// is readable by its owner alone. A file that is there is appended to. - is standard output, for what collects logs.
    #[arg(long, value_name = "FILE", env = "SPECTAP_RECORDS")]
    pub records: Option<PathBuf>,

    /// What a line looks like: an observation as /api/v1/requests shows it, or that with the members that AIPerf's readers
    /// of profile_export.jsonl look for.
    #[arg(long, value_enum, default_value_t = RecordsFormat::Spectap, requires = "records",
          env = "SPECTAP_RECORDS_FORMAT")]
    pub records_format: RecordsFormat,

    /// Size at which the file is moved aside, to FILE.1, and a new one begins; a number of bytes, or one with KiB, MiB or
    /// GiB behind it.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size, requires = "records",
          env = "SPECTAP_RECORDS_MAX_BYTES")]
    pub records_max_bytes: u64,

    /// How many files are kept beside the newest one; the oldest go.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(0..=1000),
          requires = "records", env = "SPECTAP_RECORDS_KEEP")]
    pub records_keep: u16,

    /// When the system must put written lines on the disk: when it likes, within a second, or after every batch.
    #[arg(long, value_enum, default_value_t = Fsync::Interval, requires = "records", env = "SPECTAP_RECORDS_FSYNC")]
    pub records_fsync: Fsync,

    /// A note for the manifest of the records file, of exports and of reports; may repeat (in the
    /// environment, one a line). acceptance=synthetic says that
    /// the engine is told how much to accept: every figure of a report is then marked as forced acceptance.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_note, value_delimiter = '\n', env = "SPECTAP_NOTE")]
    pub note: Vec<(String, String)>,
}

/// Longest key of a note, in bytes.
const LONGEST_KEY: usize = 64;

/// Longest value of a note, in bytes.
const LONGEST_VALUE: usize = 256;

/// The smallest file that can hold a manifest and some lines.
const SMALLEST_FILE: u64 = 4096;

fn parse_size(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("write a number of bytes, at least {SMALLEST_FILE}, or one like 256MiB or 1GiB");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    digits
        .trim()
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .filter(|&bytes| bytes >= SMALLEST_FILE)
        .ok_or_else(wrong)
}

fn parse_note(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("needs KEY=VALUE, like drafter=eagle3")?;
    let is_plain = |text: &str| !text.is_empty() && !text.contains(char::is_control);
    if !is_plain(key) || key.len() > LONGEST_KEY || !is_plain(value) || value.len() > LONGEST_VALUE
    {
        return Err(format!(
            "the key needs 1 to {LONGEST_KEY} bytes and the value 1 to {LONGEST_VALUE}, without control characters"
        ));
    }
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_a_least() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("8KiB"), Ok(8192));
        assert_eq!(parse_size("256MiB"), Ok(256 << 20));
        assert_eq!(parse_size("1 GiB"), Ok(1 << 30));
        for wrong in ["", "4095", "MiB", "1MB", "-1", "99999999999GiB", "1.5GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_note_needs_a_key_and_a_value() {
        assert_eq!(parse_note("a=b=c"), Ok(("a".into(), "b=c".into())));
        for wrong in ["a", "=b", "a=", "a=\n"] {
            assert!(parse_note(wrong).is_err(), "{wrong}");
        }
    }
}
