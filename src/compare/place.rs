//! What the words of the command line name: a tap or a file, and which part of its traffic.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::SourceError;
use crate::export::Query;
use crate::stats::Window;

/// Where a run is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Admin address of a tap.
    Tap(String),
    /// A snapshot, or records.
    File(PathBuf),
}

/// The tap that `?run=NAME` alone is of.
const DEFAULT_TAP: &str = "http://127.0.0.1:8091";

/// Reads `URL?run=NAME`, `?run=NAME` or `FILE#run=NAME`. The parameters are those of the admin port; `window` is for a tap that names
/// none.
pub(super) fn read(name: &str, window: Window) -> Result<(Place, Query), SourceError> {
    let is_tap = ["http://", "https://", "?"]
        .iter()
        .any(|start| name.starts_with(start));
    let (place, parameters) = match is_tap {
        true => match name.split_once('?').unwrap_or((name, "")) {
            ("", parameters) => (DEFAULT_TAP, parameters),
            named => named,
        },
        // A file may have such a name itself.
        false if Path::new(name).exists() => (name, ""),
        false => name.rsplit_once('#').unwrap_or((name, "")),
    };
    let mut query = query(parameters).map_err(|problem| SourceError::Part {
        name: name.to_owned(),
        problem,
    })?;
    if query.window == Window::All {
        query.window = window;
    }
    Ok(match is_tap {
        true => (Place::Tap(place.to_owned()), query),
        false if query.window != Window::All => {
            return Err(SourceError::NoWindow {
                name: name.to_owned(),
            });
        }
        false => (Place::File(place.into()), query),
    })
}

fn query(parameters: &str) -> Result<Query, String> {
    let mut pairs = Vec::new();
    for parameter in parameters.split('&').filter(|it| !it.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode_str(value)
            .decode_utf8()
            .map_err(|_| format!("{parameter}: this is no UTF-8"))?;
        if !matches!(key, "run" | "window" | "model" | "tag" | "engine") || value.is_empty() {
            return Err(format!(
                "{parameter}: write run=NAME, tag=NAME, model=NAME, engine=NAME or window=WINDOW, joined by &"
            ));
        }
        pairs.push((key, value));
    }
    Query::from_pairs(pairs.iter().map(|(key, value)| (*key, &**value)))
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> (Place, Query) {
        read(name, Window::All).unwrap()
    }

    #[test]
    fn a_tap_is_narrowed_behind_a_question_mark_and_a_file_behind_a_hash() {
        let (tap, query) = place("http://127.0.0.1:8091?run=k%20=%208&tag=a");
        assert_eq!(tap, Place::Tap("http://127.0.0.1:8091".into()));
        assert_eq!(place("?run=k%20=%208&tag=a"), (tap, query.clone()));
        assert_eq!(
            (query.run.as_deref(), query.tag.as_deref()),
            (Some("k = 8"), Some("a"))
        );
        let (file, query) = place("records.jsonl#run=k + 8");
        assert_eq!(file, Place::File("records.jsonl".into()));
        assert_eq!(query.run.as_deref(), Some("k + 8"));
        assert_eq!(
            place("records.jsonl"),
            (Place::File("records.jsonl".into()), Query::default())
        );
    }

    #[test]
    fn a_file_whose_own_name_has_a_hash_is_that_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a#run=b");
        std::fs::write(&file, "").unwrap();
        let (place, query) = place(file.to_str().unwrap());
        assert_eq!((place, query), (Place::File(file), Query::default()));
    }

    #[test]
    fn the_window_of_the_flag_is_for_taps_that_name_none() {
        let window = |name: &str| read(name, Window::Hour).map(|(_, query)| query.window);
        assert_eq!(window("http://h:1").unwrap(), Window::Hour);
        assert_eq!(window("http://h:1?window=1m").unwrap(), Window::Minute);
        let error = window("records.jsonl").unwrap_err().to_string();
        assert!(error.starts_with("records.jsonl: a window "), "{error}");
    }

    #[test]
    fn what_can_not_be_is_named_with_what_would_be_right() {
        for (name, says) in [
            ("http://h:1?runs=a", "runs=a: write run=NAME"),
            ("http://h:1?run=", "run=: write run=NAME"),
            ("file#run", "run: write run=NAME"),
            ("http://h:1?by=model", "by=model: write run=NAME"),
            ("http://h:1?window=2m", "window=2m: should be 1m, 5m"),
            ("http://h:1?run=%ff", "run=%ff: this is no UTF-8"),
        ] {
            let error = read(name, Window::All).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: ")), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }
}
