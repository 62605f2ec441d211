//! The text in which metrics are exposed: Prometheus' classic format and OpenMetrics.
//!
//! Labels come in any order, values are escaped, a line may end with a time and an exemplar, a name may be quoted inside
//! the braces. A line that can't be read is skipped, whatever is in it: the page is foreign.

use std::borrow::Cow;

/// Labels of one sample that are looked at; real ones have a dozen.
const MOST_LABELS: usize = 64;

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Its name as it stands, `_total` and the like included.
    pub name: Cow<'a, str>,
    /// Its labels as they stand.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Its value.
    pub value: f64,
}

impl Sample<'_> {
    /// The value of a label; an empty one is as good as none.
    pub fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| &**value).filter(|it| !it.is_empty())
    }
}

/// Hands every sample of a page to `take`, in order, up to `# EOF`. Gives their number.
pub fn read<'a>(page: &'a [u8], mut take: impl FnMut(Sample<'a>)) -> usize {
    let mut samples = 0;
    for line in page.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        let line = line.trim();
        if line == "# EOF" {
            break;
        }
        if let Some(sample) = sample(line) {
            samples += 1;
            take(sample);
        }
    }
    samples
}

/// The sample of a line; none for a comment, and for what can't be read.
fn sample(line: &str) -> Option<Sample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(|it: char| it == '{' || it.is_ascii_whitespace())?;
    let (name, mut rest) = line.split_at(end);
    let mut name = Cow::Borrowed(name);
    let mut labels = Vec::new();
    rest = rest.trim_start();
    if let Some(inside) = rest.strip_prefix('{') {
        let quoted;
        (quoted, labels, rest) = braces(inside)?;
        match quoted {
            Some(quoted) if name.is_empty() => name = quoted,
            Some(_) => return None,
            None => {}
        }
    }
    if name.is_empty() {
        return None;
    }
    // A time and an exemplar may follow.
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name,
        labels,
        value,
    })
}

type Labels<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// What stands between the braces: a quoted name, the labels, and what follows the closing brace.
fn braces(mut rest: &str) -> Option<(Option<Cow<'_, str>>, Labels<'_>, &str)> {
    let (mut quoted_name, mut labels) = (None, Vec::new());
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Some((quoted_name, labels, after));
        }
        let name;
        if let Some(inside) = rest.strip_prefix('"') {
            (name, rest) = quoted(inside)?;
        } else {
            let end = rest.find(|it: char| !(it.is_ascii_alphanumeric() || "_:.".contains(it)))?;
            name = Cow::Borrowed(&rest[..end]);
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('=') {
            let value;
            (value, rest) = quoted(after.trim_start().strip_prefix('"')?)?;
            if name.is_empty() || labels.len() == MOST_LABELS {
                return None;
            }
            labels.push((name, value));
        } else if quoted_name.replace(name).is_some() {
            return None;
        }
        rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// A text up to its closing quote, and what follows.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut escaped = false;
    while *bytes.get(at)? != b'"' {
        if bytes[at] == b'\\' {
            escaped = true;
            at += 1;
        }
        at += 1;
    }
    // Quote and backslash are ASCII, so `at` is a boundary.
    let (inside, rest) = (text.get(..at)?, text.get(at + 1..)?);
    if !escaped {
        return Some((Cow::Borrowed(inside), rest));
    }
    let mut plain = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                'n' => plain.push('\n'),
                other => plain.push(other),
            },
            other => plain.push(other),
        }
    }
    Some((Cow::Owned(plain), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Name, labels and value.
    type Told = (String, Vec<(String, String)>, f64);

    fn one(line: &str) -> Option<Told> {
        let mut found = Vec::new();
        read(line.as_bytes(), |sample| found.push(sample));
        assert!(found.len() < 2);
        let sample = found.pop()?;
        let labels = sample.labels.into_iter();
        let labels = labels.map(|(name, value)| (name.into_owned(), value.into_owned()));
        Some((sample.name.into_owned(), labels.collect(), sample.value))
    }

    fn labelled(labels: &[(&str, &str)]) -> Vec<(String, String)> {
        let labels = labels.iter();
        labels
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn every_form_of_a_line_is_read() {
        let two = labelled(&[("b", "x"), ("a", "y")]);
        for (line, labels, value) in [
            ("m 5", labelled(&[]), 5.0),
            ("m{} 5", labelled(&[]), 5.0),
            (
                "m{b=\"x\",a=\"y\"} 1.23457e+06 1700000000000\r",
                two.clone(),
                1_234_570.0,
            ),
            ("m { b = \"x\" , a=\"y\", } 7", two.clone(), 7.0),
            (
                "m{b=\"x\",a=\"y\"} 3 # {trace_id=\"z\"} 0.5 17.1",
                two.clone(),
                3.0,
            ),
            ("{\"m\",b=\"x\",\"a\"=\"y\"} 2", two, 2.0),
            (
                "m{le=\"+Inf\"} +Inf",
                labelled(&[("le", "+Inf")]),
                f64::INFINITY,
            ),
            (
                r#"m{a="q\"\\\n{},= é"} 1"#,
                labelled(&[("a", "q\"\\\n{},= é")]),
                1.0,
            ),
        ] {
            assert_eq!(one(line), Some(("m".to_owned(), labels, value)), "{line}");
        }
        assert!(one("m NaN").unwrap().2.is_nan());
    }

    #[test]
    fn what_is_no_sample_is_skipped() {
        for line in [
            "",
            "# HELP m text",
            "# TYPE m counter",
            "m",
            "m{",
            "m{a}",
            "m{a=\"x\" 5",
            "m{a=\"x} 5",
            "m{a=x} 5",
            "m{a=\"x\" b=\"y\"} 5",
            "m{=\"x\"} 5",
            "m{\"n\"} 5",
            "{a=\"x\"} 5",
            "m five",
            "m{a=\"x\\",
            "{\"error\":\"not found\"}",
            "<html>",
        ] {
            assert_eq!(one(line), None, "{line}");
        }
    }

    #[test]
    fn a_broken_line_takes_no_other_with_it_and_nothing_counts_behind_the_end() {
        let mut names = Vec::new();
        let page = b"a 1\n\xff\xfe 2\nb{x=\"\n\nc 3\n# EOF\nd 4\n";
        let count = read(page, |sample| names.push(sample.name.into_owned()));
        assert_eq!((names, count), (vec!["a".to_owned(), "c".to_owned()], 2));
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(page in proptest::collection::vec(any::<u8>(), 0..400)) {
            read(&page, |_| {});
        }

        #[test]
        fn lines_out_of_the_formats_own_signs_never_panic(line in r#"[m{}"\\=,#n é1 \n]{0,60}"#) {
            read(line.as_bytes(), |_| {});
        }

        #[test]
        fn any_value_of_a_label_comes_back(value in "\\PC*") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let line = format!("m{{a=\"{escaped}\",z=\"1\"}} 5");
            let expected = labelled(&[("a", &value), ("z", "1")]);
            prop_assert_eq!(one(&line), Some(("m".to_owned(), expected, 5.0)));
        }
    }
}
