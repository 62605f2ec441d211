//! Bodies, byte by byte but for what the engine does not repeat, and their events in order.

use super::difference::{Difference, shown};
use super::tokens::{Kind, Token, tokens};

/// What became of the comparison.
pub(super) enum Bodies {
    Same,
    Different(Difference),
    /// The engine's own answers are too different to be compared with anything.
    NotRepeated,
}

/// Compares a body with those of direct answers.
pub(super) fn compare(direct: &[&[u8]], through: &[u8]) -> Bodies {
    let direct: Vec<Vec<Token<'_>>> = direct.iter().map(|body| tokens(body)).collect();
    let ours = tokens(through);
    if direct.iter().any(|one| is_same(one, &direct, &ours)) {
        return Bodies::Same;
    }
    let is_repeated = (1..direct.len()).any(|number| {
        direct[..number]
            .iter()
            .any(|one| has_shape(one, &direct[number]))
    });
    if !is_repeated {
        return Bodies::NotRepeated;
    }
    // The one with which it has most in common.
    let nearest = direct.iter().max_by_key(|one| common(one, &ours));
    let nearest = nearest.map_or(&[][..], Vec::as_slice);
    Bodies::Different(Difference::by_chance_perhaps(
        what_differs(nearest, &ours),
        first_difference(nearest, &ours),
    ))
}

/// Whether all tokens are equal, but for values that differ by nature or between direct answers.
fn is_same(one: &[Token<'_>], direct: &[Vec<Token<'_>>], ours: &[Token<'_>]) -> bool {
    let shaped_alike: Vec<&Vec<Token<'_>>> = direct
        .iter()
        .filter(|other| has_shape(one, other))
        .collect();
    one.len() == ours.len()
        && one
            .iter()
            .zip(ours)
            .enumerate()
            .all(|(number, (token, our))| {
                let is_unstable = || {
                    token.differs
                        || shaped_alike
                            .iter()
                            .any(|other| other[number].bytes != token.bytes)
                };
                token.bytes == our.bytes || token.is_like(our) && is_unstable()
            })
}

/// Whether two bodies differ in values only.
fn has_shape(one: &[Token<'_>], other: &[Token<'_>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.is_like(b))
}

fn is_equal(one: &Token<'_>, other: &Token<'_>) -> bool {
    one.bytes == other.bytes || one.differs && one.is_like(other)
}

/// Number of tokens that are equal at the beginning.
fn common(one: &[Token<'_>], other: &[Token<'_>]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(a, b)| is_equal(a, b)).count()
}

/// The name of what differs.
fn what_differs(direct: &[Token<'_>], through: &[Token<'_>]) -> &'static str {
    let (theirs, ours) = (events(direct), events(through));
    if theirs.len() < 3 {
        return "body";
    }
    let holds = |all: &[Vec<u8>], some: &[Vec<u8>]| {
        let mut left = all.to_vec();
        some.iter().all(|event| {
            let place = left.iter().position(|it| it == event);
            place.map(|place| left.swap_remove(place)).is_some()
        })
    };
    match (holds(&theirs, &ours), holds(&ours, &theirs)) {
        (true, true) => "event-order",
        (true, false) => "event-missing",
        (false, true) => "event-added",
        (false, false) => "body",
    }
}

/// The events of a stream, without what differs by nature.
fn events(tokens: &[Token<'_>]) -> Vec<Vec<u8>> {
    let mut events = vec![Vec::new()];
    let mut was_line_end = false;
    for token in tokens {
        let is_line_end = token.bytes == b"\n";
        if let Some(event) = events.last_mut() {
            match (token.differs, token.kind) {
                (true, Kind::Text) => event.extend(b"\"\""),
                (true, _) => event.push(b'0'),
                (false, _) => event.extend(token.bytes),
            }
        }
        if is_line_end && was_line_end {
            events.push(Vec::new());
        }
        was_line_end = is_line_end;
    }
    events.retain(|event| !event.is_empty());
    events
}

fn first_difference(direct: &[Token<'_>], through: &[Token<'_>]) -> String {
    let at = common(direct, through);
    let rest = |tokens: &[Token<'_>]| -> Vec<u8> {
        // A little of what stands before it tells where it is.
        let from = at.saturating_sub(4).min(tokens.len());
        tokens[from..]
            .iter()
            .flat_map(|token| token.bytes)
            .copied()
            .take(120)
            .collect()
    };
    let place = |tokens: &[Token<'_>]| {
        tokens.get(at).map_or_else(
            || "the end".to_owned(),
            |token| format!("byte {}", token.at),
        )
    };
    format!(
        "from {}: direct {}, through {}",
        place(direct),
        shown(&rest(direct)),
        shown(&rest(through))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "data: {\"id\":\"a\",\"text\":\"one\"}\n\ndata: {\"id\":\"a\",\"text\":\"two\"}\n\ndata: [DONE]\n\n";

    fn name(direct: &[&str], through: &str) -> &'static str {
        let direct: Vec<&[u8]> = direct.iter().map(|body| body.as_bytes()).collect();
        match compare(&direct, through.as_bytes()) {
            Bodies::Same => "same",
            Bodies::NotRepeated => "not repeated",
            Bodies::Different(difference) => difference.name,
        }
    }

    #[test]
    fn a_difference_is_called_by_what_it_is() {
        let first = "data: {\"id\":\"a\",\"text\":\"one\"}\n\n";
        let rest = &STREAM[first.len()..];
        let direct = [STREAM, STREAM];
        let end = "data: [DONE]\n\n";
        let second = rest.strip_suffix(end).unwrap();
        assert_eq!(name(&direct, STREAM), "same");
        assert_eq!(name(&direct, rest), "event-missing");
        assert_eq!(name(&direct, &format!("{first}{STREAM}")), "event-added");
        assert_eq!(
            name(&direct, &format!("{second}{first}{end}")),
            "event-order"
        );
        assert_eq!(name(&direct, &STREAM.replace("one", "eno")), "body");
        assert_eq!(name(&direct, &STREAM.replace(":\"one", ": \"one")), "body");
    }

    #[test]
    fn what_the_engine_does_not_repeat_is_left_out_and_nothing_else() {
        let other = |id: &str, text: &str| STREAM.replace("\"a\"", id).replace("one", text);
        let again = other("\"b\"", "uno");
        assert_eq!(name(&[STREAM, &again], &other("\"c\"", "eins")), "same");
        // The second text is repeated, so that it counts.
        assert_eq!(
            name(&[STREAM, &again], &STREAM.replace("two", "due")),
            "body"
        );
        // An id is no number.
        assert_eq!(name(&[STREAM, STREAM], &other("7", "one")), "body");
    }

    #[test]
    fn two_answers_of_another_shape_can_not_be_compared_with_a_third() {
        let longer = format!("data: {{}}\n\n{STREAM}");
        assert_eq!(name(&[STREAM, &longer], "{}"), "not repeated");
        assert_eq!(name(&[STREAM, &longer], &longer), "same");
        assert_eq!(name(&[STREAM, &longer, STREAM], "{}"), "body");
    }
}
