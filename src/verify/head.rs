//! Header lines: names in their case and order, values but for those that differ by nature.

use std::collections::BTreeSet;

use super::answer::Answer;
use super::difference::{Difference, shown};

/// Fields of one hop (RFC 9110 section 7.6.1).
const HOP_BY_HOP: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "upgrade",
];

/// Fields of the framing, which is compared as a whole.
const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

type Line<'a> = (&'a str, &'a [u8]);

/// Two lists of lines that should be equal.
struct Heads<'a> {
    direct: Vec<Line<'a>>,
    again: Vec<Line<'a>>,
    through: Vec<Line<'a>>,
    /// Lengths of the bodies, direct and through. Content-Length says no more than the bodies, whose comparison allows for
    /// ids and times.
    bodies: [usize; 2],
}

/// Compares the head of an answer with those of two direct ones.
pub(super) fn compare(
    direct: &Answer,
    again: &Answer,
    through: &Answer,
    same_framing: bool,
    found: &mut Vec<Difference>,
) {
    let heads = Heads {
        direct: end_to_end(direct, same_framing),
        again: end_to_end(again, same_framing),
        through: end_to_end(through, same_framing),
        bodies: [direct.body.len(), through.body.len()],
    };
    let (ours, theirs) = (of_hop(through), of_hop(direct));
    if ours != theirs {
        let detail = format!("direct {theirs:?}, through {ours:?}");
        found.push(Difference::by_design("hop-by-hop", detail));
    }
    let before = found.len();
    let names = heads.direct.iter().chain(&heads.through);
    let names: BTreeSet<String> = names.map(|(name, _)| name.to_ascii_lowercase()).collect();
    for name in names {
        heads.compare_field(&name, found);
    }
    if found.len() == before {
        heads.compare_order(found);
    }
}

impl Heads<'_> {
    fn compare_field(&self, name: &str, found: &mut Vec<Difference>) {
        let of = |lines: &[Line<'_>]| -> Vec<(String, Vec<u8>)> {
            let lines = lines.iter();
            lines
                .filter(|(it, _)| it.eq_ignore_ascii_case(name))
                .map(|(name, value)| ((*name).to_owned(), value.to_vec()))
                .collect()
        };
        let (direct, again, through) = (of(&self.direct), of(&self.again), of(&self.through));
        let values = |lines: &[(String, Vec<u8>)]| -> Vec<Vec<u8>> {
            lines.iter().map(|(_, value)| value.clone()).collect()
        };
        let (wanted, got) = (values(&direct), values(&through));
        let accident = |what, detail| Difference::by_accident(what, format!("{name}: {detail}"));
        if got.len() < wanted.len() {
            // With or without a space behind the comma.
            let joined = |with: &str| wanted.join(with.as_bytes());
            let merged = got.len() == 1 && [joined(", "), joined(",")].contains(&got[0]);
            let what = if merged {
                "repeats-merged"
            } else {
                "field-missing"
            };
            let lines = shown(&wanted.join(&b" | "[..]));
            found.push(accident(what, format!("direct {lines}")));
            return;
        }
        if got.len() > wanted.len() {
            let lines = shown(&got.join(&b" | "[..]));
            found.push(accident("field-added", format!("through {lines}")));
            return;
        }
        for (number, (value, ours)) in wanted.iter().zip(&got).enumerate() {
            let repeated = again.get(number).is_none_or(|(_, again)| again == value);
            if value != ours && repeated && !self.may_differ(name, value, ours) {
                let detail = format!("direct {}, through {}", shown(value), shown(ours));
                found.push(accident("field-value", detail));
            }
            let (case, our_case) = (&direct[number].0, &through[number].0);
            if case != our_case {
                found.push(accident(
                    "field-case",
                    format!("direct {case}, through {our_case}"),
                ));
            }
        }
    }

    /// Whether a value differs by nature.
    fn may_differ(&self, name: &str, direct: &[u8], through: &[u8]) -> bool {
        let [direct_body, through_body] = self.bodies;
        let is_length = |value: &[u8], body: usize| value == body.to_string().as_bytes();
        match name {
            "date" | "age" | "x-request-id" => true,
            "content-length" => is_length(direct, direct_body) && is_length(through, through_body),
            _ => ["-ms", "-time", "-seconds", "-request-id"]
                .iter()
                .any(|end| name.ends_with(end)),
        }
    }

    fn compare_order(&self, found: &mut Vec<Difference>) {
        let names = |lines: &[Line<'_>]| -> Vec<String> {
            let lines = lines.iter();
            lines.map(|(name, _)| name.to_ascii_lowercase()).collect()
        };
        let (direct, through) = (names(&self.direct), names(&self.through));
        if direct == through {
            return;
        }
        let detail = format!("direct {}, through {}", direct.join(" "), through.join(" "));
        found.push(if adjacent(&direct) == through {
            Difference::by_design("repeats-adjacent", detail)
        } else {
            Difference::by_accident("field-order", detail)
        });
    }
}

/// The names with repeats moved to the first of their kind.
fn adjacent(names: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let firsts = names.iter().filter(|name| seen.insert(name.as_str()));
    firsts
        .flat_map(|first| names.iter().filter(move |name| *name == first).cloned())
        .collect()
}

fn end_to_end(answer: &Answer, with_framing: bool) -> Vec<Line<'_>> {
    let mut listed = Vec::new();
    for value in answer.values("connection") {
        let value = String::from_utf8_lossy(value).to_ascii_lowercase();
        listed.extend(value.split(',').map(|name| name.trim().to_owned()));
    }
    let lines = answer.fields.iter();
    lines
        .map(|(name, value)| (name.as_str(), value.as_slice()))
        .filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            if FRAMING.contains(&name.as_str()) {
                with_framing
            } else {
                !HOP_BY_HOP.contains(&name.as_str()) && !listed.contains(&name)
            }
        })
        .collect()
}

/// The lines of the hop.
fn of_hop(answer: &Answer) -> Vec<String> {
    let lines = answer.fields.iter();
    lines
        .filter(|(name, _)| HOP_BY_HOP.contains(&name.to_ascii_lowercase().as_str()))
        .map(|(name, value)| format!("{name}: {}", value.escape_ascii()))
        .collect()
}
