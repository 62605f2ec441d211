//! What an engine generates for one request: pieces of text in the order in which they are sent, with the steps behind
//! each.

use fastrand::Rng;

use super::acceptance::{Acceptance, Step};
use super::vocabulary::{self, Token};

/// Why a sequence ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// `max_tokens` was reached.
    Length,
    /// The model ended by itself.
    Stop,
    /// A stop string of the request was met.
    StopString(String),
    /// A stop token of the request was met.
    StopToken(u32),
    /// The server was told to abort.
    Abort,
}

impl Finish {
    /// The `finish_reason` of the OpenAI routes.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Stop | Self::StopString(_) | Self::StopToken(_) => "stop",
            Self::Abort => "abort",
        }
    }
}

/// What is sent of one sequence at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which choice of the response it belongs to.
    pub index: usize,
    /// After how many verify steps from the first token it is sent.
    pub round: u32,
    /// Its text.
    pub text: String,
    /// The ids of its tokens; their number is what usage counts.
    pub tokens: Vec<u32>,
    /// The steps that it took.
    pub steps: Vec<Step>,
    /// Set on the last piece of a sequence.
    pub finish: Option<Finish>,
}

/// What an engine generates for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Tokens of the prompt or of all prompts together.
    pub prompt_tokens: usize,
    /// Ids of the first prompt's tokens; sent only where `echo` asks for them.
    pub prompt_ids: Vec<u32>,
    /// Everything that is sent, in order.
    pub pieces: Vec<Piece>,
}

/// What decides a simulated generation, apart from chance.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    /// How well drafts do.
    pub(super) acceptance: &'a Acceptance,
    /// Whether the number of drafts moves.
    pub(super) adaptive: bool,
    /// How many sequences.
    pub(super) sequences: usize,
    /// The most tokens per sequence; `None`: the model ends by itself.
    pub(super) max_tokens: Option<usize>,
    /// Strings that end a sequence.
    pub(super) stop: &'a [String],
    /// Tokens that end a sequence.
    pub(super) stop_token_ids: &'a [u32],
    /// Tokens of the prompts.
    pub(super) prompt_tokens: usize,
}

impl Generation {
    /// Draws a generation: every sequence gets its first token from the prefill, then steps until its end.
    pub(super) fn draw(plan: &Plan<'_>, rng: &mut Rng) -> Self {
        let mut sequences: Vec<_> = (0..plan.sequences)
            .map(|index| {
                Sequence::new(index, plan, rng)
                    .collect::<Vec<_>>()
                    .into_iter()
            })
            .collect();
        let mut pieces = Vec::new();
        loop {
            let before = pieces.len();
            pieces.extend(sequences.iter_mut().filter_map(Iterator::next));
            if pieces.len() == before {
                break;
            }
        }
        let prompt_ids = (0..plan.prompt_tokens)
            .map(|_| vocabulary::draw(rng).id)
            .collect();
        Self {
            prompt_tokens: plan.prompt_tokens,
            prompt_ids,
            pieces,
        }
    }
}

/// One sequence on its way, one piece per step.
struct Sequence<'a> {
    plan: &'a Plan<'a>,
    rng: Rng,
    index: usize,
    round: u32,
    left: usize,
    /// The finish of a sequence that is not cut short.
    natural: Finish,
    /// All text so far; what is sent of it may lag behind, see [`Sequence::held_back`].
    text: String,
    sent: usize,
    ended: bool,
}

impl<'a> Sequence<'a> {
    fn new(index: usize, plan: &'a Plan<'a>, rng: &mut Rng) -> Self {
        let mut rng = rng.fork();
        let (left, natural) = match plan.max_tokens {
            Some(max) => (max.max(1), Finish::Length),
            None => (rng.usize(48..=384), Finish::Stop),
        };
        Self {
            plan,
            rng,
            index,
            round: 0,
            left,
            natural,
            text: String::new(),
            sent: 0,
            ended: false,
        }
    }

    /// vLLM keeps back as many characters as a stop string that has begun could have, less one.
    fn held_back(&self) -> usize {
        self.plan
            .stop
            .iter()
            .map(|s| s.chars().count())
            .max()
            .unwrap_or(1)
            .saturating_sub(1)
    }

    /// The first stop string that ends behind byte `before`, and where it begins.
    fn stop_string(&self, before: usize) -> Option<(usize, &'a String)> {
        let found = self
            .plan
            .stop
            .iter()
            .filter(|stop| !stop.is_empty())
            .filter_map(|stop| {
                let from = self
                    .text
                    .floor_char_boundary(before.saturating_sub(stop.len()));
                Some((from + self.text.get(from..)?.find(stop.as_str())?, stop))
            });
        found.min()
    }

    /// Text that may be sent now, up to `end` bytes or, while the sequence goes on, short of what is held back.
    fn release(&mut self, end: Option<usize>) -> String {
        let end = end.unwrap_or_else(|| match self.held_back() {
            0 => self.text.len(),
            held => self
                .text
                .char_indices()
                .rev()
                .nth(held - 1)
                .map_or(0, |(at, _)| at),
        });
        let from = self.sent.min(end);
        self.sent = self.sent.max(end);
        self.text.get(from..end).unwrap_or_default().to_owned()
    }
}

impl Iterator for Sequence<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.ended {
            return None;
        }
        // The first token comes from the prefill; an engine without speculation takes one token per pass ever after.
        let step = (self.round > 0 && self.plan.acceptance.k() > 0)
            .then(|| self.plan.acceptance.draw(&mut self.rng, self.plan.adaptive));
        let wanted = step.map_or(1, |step| step.accepted as usize + 1);
        let drawn: Vec<Token> = (0..wanted.min(self.left))
            .map(|_| vocabulary::draw(&mut self.rng))
            .collect();

        let before = self.text.len();
        let mut tokens = Vec::with_capacity(drawn.len());
        let mut finish = None;
        for token in drawn {
            tokens.push(token.id);
            if self.plan.stop_token_ids.contains(&token.id) {
                // A stop token counts but is not shown, and what the step drafted beyond it is dropped.
                finish = Some(Finish::StopToken(token.id));
                break;
            }
            self.text.push_str(token.text);
        }
        self.left -= tokens.len();
        if self.left == 0 && self.natural == Finish::Stop && finish.is_none() {
            // The model's own end is a token too, without text.
            tokens.push(vocabulary::END);
        }

        let found = self.stop_string(before);
        let mut end = finish.is_some().then_some(self.text.len());
        if let Some((at, stop)) = found {
            end = Some(at);
            finish = Some(Finish::StopString(stop.clone()));
        } else if finish.is_none() && self.left == 0 {
            end = Some(self.text.len());
            finish = Some(self.natural.clone());
        }
        self.ended = finish.is_some();
        let piece = Piece {
            index: self.index,
            round: self.round,
            text: self.release(end),
            tokens,
            steps: step.into_iter().collect(),
            finish,
        };
        self.round += 1;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan<'a>(acceptance: &'a Acceptance, max_tokens: usize, stop: &'a [String]) -> Plan<'a> {
        Plan {
            acceptance,
            adaptive: false,
            sequences: 1,
            max_tokens: Some(max_tokens),
            stop,
            stop_token_ids: &[],
            prompt_tokens: 3,
        }
    }

    fn totals(generation: &Generation) -> (usize, usize, usize) {
        let tokens = generation.pieces.iter().map(|p| p.tokens.len()).sum();
        let steps: Vec<_> = generation.pieces.iter().flat_map(|p| &p.steps).collect();
        (
            tokens,
            steps.len(),
            steps.iter().map(|s| s.accepted as usize).sum(),
        )
    }

    #[test]
    fn tokens_are_one_and_a_bonus_per_step_and_the_accepted_ones_cut_at_the_maximum() {
        let acceptance = Acceptance::parse("1,1,1").unwrap();
        let generation = Generation::draw(&plan(&acceptance, 10, &[]), &mut Rng::with_seed(1));
        // 1 + 4 + 4 + 1: the last step still counts all three of its accepted drafts.
        assert_eq!(totals(&generation), (10, 3, 9));
        assert_eq!(
            generation.pieces.last().unwrap().finish,
            Some(Finish::Length)
        );
    }

    #[test]
    fn one_token_takes_no_step() {
        let acceptance = Acceptance::parse("1,1").unwrap();
        let generation = Generation::draw(&plan(&acceptance, 1, &[]), &mut Rng::with_seed(1));
        assert_eq!(totals(&generation), (1, 0, 0));
    }

    #[test]
    fn without_speculation_each_pass_gives_one_token_and_no_step() {
        let acceptance = Acceptance::parse("none").unwrap();
        let generation = Generation::draw(&plan(&acceptance, 20, &[]), &mut Rng::with_seed(1));
        assert_eq!(totals(&generation), (20, 0, 0));
        assert_eq!(generation.pieces.len(), 20);
    }

    #[test]
    fn a_stop_string_ends_the_text_before_itself_and_no_part_of_it_is_sent() {
        let acceptance = Acceptance::parse("0.5,0.5").unwrap();
        let stop = vec![" token".to_owned()];
        let stopped = Generation::draw(&plan(&acceptance, 3_000, &stop), &mut Rng::with_seed(4));
        let text: String = stopped.pieces.iter().map(|p| p.text.as_str()).collect();
        assert_eq!(
            stopped.pieces.last().unwrap().finish,
            Some(Finish::StopString(" token".to_owned()))
        );
        assert!(!text.contains(" token"));
        let free = Generation::draw(&plan(&acceptance, 3_000, &[]), &mut Rng::with_seed(4));
        let whole: String = free.pieces.iter().map(|p| p.text.as_str()).collect();
        assert_eq!(whole.split(" token").next(), Some(text.as_str()));
    }

    #[test]
    fn a_stop_token_is_counted_but_not_shown() {
        let acceptance = Acceptance::parse("0.5").unwrap();
        let ids = [1_004];
        let plan = Plan {
            stop_token_ids: &ids,
            ..plan(&acceptance, 3_000, &[])
        };
        let generation = Generation::draw(&plan, &mut Rng::with_seed(4));
        let last = generation.pieces.last().unwrap();
        assert_eq!(last.finish, Some(Finish::StopToken(1_004)));
        assert_eq!(last.tokens.last(), Some(&1_004));
        assert!(generation.pieces.iter().all(|p| !p.text.contains(" token")));
    }

    #[test]
    fn the_same_seed_gives_the_same_generation() {
        let acceptance = Acceptance::parse("0.8,0.7").unwrap();
        let draw = |seed| Generation::draw(&plan(&acceptance, 64, &[]), &mut Rng::with_seed(seed));
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }
}
