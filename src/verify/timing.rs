//! When things came: not how fast, which a busy machine decides, but whether the head came at once and the body bit by bit.

use std::time::Duration;

use super::answer::Answer;
use super::difference::Difference;

/// A stream that takes less is over before anything can be told of it.
const SHORTEST: Duration = Duration::from_millis(30);

/// Compares the course of an answer with that of direct ones.
pub(super) fn compare(direct: &[&Answer], through: &Answer, found: &mut Vec<Difference>) {
    let lasted = |answer: &Answer| answer.last_after.saturating_sub(answer.head_after);
    let spread = |answer: &Answer| answer.last_after.saturating_sub(answer.first_after);
    let shortest = |of: &dyn Fn(&Answer) -> Duration| {
        let all = direct.iter().map(|answer| of(answer));
        all.min().filter(|shortest| *shortest >= SHORTEST)
    };
    let told = |name, direct: Duration, through: Duration| {
        let detail = format!(
            "direct {} ms, through {} ms",
            direct.as_millis(),
            through.as_millis()
        );
        Difference::by_chance_perhaps(name, detail)
    };
    if let Some(shortest) = shortest(&lasted)
        && lasted(through) < shortest / 4
    {
        found.push(told("head-late", shortest, lasted(through)));
    } else if let Some(shortest) = shortest(&spread)
        && spread(through) < shortest / 4
    {
        found.push(told("buffered", shortest, spread(through)));
    }
}
