//! One request, sent as often as it takes to tell a fault from chance.

use super::VerifyError;
use super::address::Address;
use super::compare::compare as compare_exchanges;
use super::difference::Difference;
use super::exchange::Exchange;
use super::requests::Request;

/// How often a request goes through the tap at most. A busy engine may join what it sends, or be slow once.
const ROUNDS: usize = 3;

/// What was found of one request.
pub(super) struct Compared {
    pub(super) differences: Vec<Difference>,
    /// Its body could not be compared.
    pub(super) is_not_repeated: bool,
    /// The engine's own status, where it answered.
    pub(super) status: Option<u16>,
    pub(super) generates: bool,
}

impl Compared {
    /// The result in a word or two.
    pub(super) fn word(&self) -> &'static str {
        let by_accident = self.differences.iter().any(|one| one.by_design.is_none());
        match (by_accident, self.differences.is_empty()) {
            (true, _) => "DIFFERENT",
            (false, _) if self.is_not_repeated => "not repeated by the engine",
            (false, false) => "same, but for what is there by design",
            (false, true) => "same",
        }
    }
}

/// Sends a request both ways and compares.
pub(super) fn compare(
    request: &Request,
    upstream: &Address,
    through: &Address,
) -> Result<Compared, VerifyError> {
    let send = |address: &Address| {
        Exchange::of(request, address).map_err(|error| address.unreachable(&error))
    };
    let mut direct = vec![send(upstream)?];
    let mut lasting: Vec<Difference> = Vec::new();
    let mut last_round = Vec::new();
    let mut is_not_repeated = false;
    for _ in 0..ROUNDS {
        direct.push(send(upstream)?);
        let found = compare_exchanges(request, &direct, &send(through)?);
        let (chance, sure): (Vec<_>, Vec<_>) = found
            .differences
            .into_iter()
            .partition(|difference| difference.may_be_chance);
        for difference in sure {
            if !lasting.iter().any(|known| known.name == difference.name) {
                lasting.push(difference);
            }
        }
        (last_round, is_not_repeated) = (chance, found.is_not_repeated);
        if last_round.is_empty() && !is_not_repeated {
            break;
        }
    }
    lasting.append(&mut last_round);
    Ok(Compared {
        differences: lasting,
        is_not_repeated,
        status: direct[0].answers.first().map(|answer| answer.status),
        generates: request.generates,
    })
}
