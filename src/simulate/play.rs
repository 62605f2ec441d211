//! One generation on its way: paces its pieces, moves the engine's counters and writes the log, whatever happens.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::generation::{Finish, Generation, Piece, Plan};
use super::log::{Entry, Outcome, SequenceEntry};
use super::request::Asked;
use super::response::Responder;
use super::settings::Model;
use super::state::State;

/// A generation on its way. Dropped before [`Play::record`], it counts as cancelled by the client.
pub(super) struct Play {
    state: Arc<State>,
    /// The response's id.
    pub(super) id: String,
    /// Seconds since 1970 at arrival.
    pub(super) created: u64,
    /// Ids of the first prompt's tokens.
    pub(super) prompt_ids: Vec<u32>,
    pieces: VecDeque<Piece>,
    entry: Option<Entry>,
    finishes: Vec<Option<Finish>>,
    abort: CancellationToken,
    /// What a stream sends while it waits, and how often.
    comment: Option<(Duration, &'static str)>,
    taken: usize,
    failed: bool,
    arrived: Instant,
    first_token: Option<Instant>,
    last_token: Instant,
}

/// When things happened, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) to_first_token: f64,
    pub(super) generation: f64,
    /// Between two tokens; `None` with fewer than two.
    pub(super) between_tokens: Option<f64>,
    pub(super) tokens_per_second: f64,
}

impl Play {
    /// Draws the generation that a request gets; `name` makes the response's id.
    pub(super) fn start(
        state: &Arc<State>,
        model: &Model,
        asked: &Asked,
        name: impl FnOnce(&mut Rng) -> String,
    ) -> Self {
        let number = state.next_arrival();
        // Far apart for neighbouring numbers, so that requests do not resemble each other.
        let mut rng = Rng::with_seed(
            state
                .settings
                .seed
                .wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        );
        let id = name(&mut rng);
        let room = state
            .settings
            .max_model_len
            .saturating_sub(asked.prompt_tokens)
            .max(1);
        let of_request = asked.acceptance.as_ref();
        // The response tells the model's k, whatever the request brings.
        let of_request = of_request.filter(|it| it.k() == model.acceptance.k());
        let generation = state.settings.script.clone().unwrap_or_else(|| {
            let plan = Plan {
                acceptance: of_request.unwrap_or(&model.acceptance),
                adaptive: state.settings.adaptive,
                sequences: asked.sequences(),
                max_tokens: asked.max_tokens.map(|max| max.min(room)),
                stop: &asked.stop,
                stop_token_ids: &asked.stop_token_ids,
                prompt_tokens: asked.prompt_tokens,
            };
            Generation::draw(&plan, &mut rng)
        });
        let sequences = generation
            .pieces
            .iter()
            .map(|piece| piece.index + 1)
            .max()
            .unwrap_or_default();
        state.counters.change(&model.name, |counters| {
            counters.prompt_tokens += generation.prompt_tokens as u64;
            counters.running += 1;
        });
        let now = Instant::now();
        Self {
            abort: state.abortable(&id),
            entry: Some(Entry {
                number,
                model: model.name.clone(),
                route: asked.route.path(),
                id: id.clone(),
                stream: asked.stream,
                sequences: vec![SequenceEntry::default(); sequences],
                payload_on_the_wire: false,
                usage_on_the_wire: false,
                prompt_tokens: generation.prompt_tokens,
                outcome: Outcome::Cancelled,
            }),
            finishes: vec![None; sequences],
            state: Arc::clone(state),
            id,
            created: State::seconds(),
            prompt_ids: generation.prompt_ids,
            pieces: generation.pieces.into(),
            comment: None,
            taken: 0,
            failed: false,
            arrived: now,
            first_token: None,
            last_token: now,
        }
    }

    /// Lets a stream send a comment whenever it has waited for so long.
    pub(super) fn keep_alive(&mut self, interval: Option<Duration>, comment: &'static str) {
        let interval = interval.filter(|interval| !interval.is_zero());
        self.comment = interval.map(|interval| (interval, comment));
    }

    /// The next piece, when its time has come. While a stream waits, `responder` gets keep-alive comments.
    pub(super) async fn next(
        &mut self,
        mut responder: Option<&mut Responder>,
    ) -> io::Result<Option<Piece>> {
        let settings = &self.state.settings;
        let faults = &settings.faults;
        if responder.is_some() && faults.fail_after_pieces == Some(self.taken) {
            self.failed = true;
            return Ok(None);
        }
        let comment = self.comment.filter(|_| responder.is_some());
        if let Some(piece) = self.pieces.front() {
            let mut due = self.arrived + settings.prefill_time + settings.step_time * piece.round;
            if piece.finish.is_some() && !faults.finish_delay.is_zero() {
                due = due.max(Instant::now()) + faults.finish_delay;
            }
            let mut spoken = Instant::now();
            while due > Instant::now() {
                let comment_at = comment.map(|(interval, _)| spoken + interval);
                tokio::select! {
                    () = sleep_until(comment_at.map_or(due, |at| at.min(due))) => {}
                    () = self.abort.cancelled() => break,
                }
                if let (Some(at), Some((_, text)), Some(responder)) =
                    (comment_at, comment, responder.as_deref_mut())
                    && at <= Instant::now()
                    && due > Instant::now()
                {
                    responder.comment(text).await?;
                    spoken = Instant::now();
                }
            }
        }
        if self.abort.is_cancelled() {
            self.cut_short();
        }
        self.taken += 1;
        Ok(self.pieces.pop_front().inspect(|piece| self.count(piece)))
    }

    /// Whether the stream ends by an error, on purpose.
    pub(super) fn failed(&self) -> bool {
        self.failed
    }

    /// Waits before what follows the last piece of a stream, where a fault says so.
    pub(super) async fn before_trailer(&self) {
        let delay = self.state.settings.faults.trailer_delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Replaces all that is still to come by an abrupt end of every sequence.
    fn cut_short(&mut self) {
        if self
            .pieces
            .iter()
            .all(|piece| piece.finish == Some(Finish::Abort))
        {
            return;
        }
        let open = (0..self.finishes.len()).filter(|index| self.finishes[*index].is_none());
        self.pieces = open
            .map(|index| Piece {
                index,
                round: 0,
                text: String::new(),
                tokens: Vec::new(),
                steps: Vec::new(),
                finish: Some(Finish::Abort),
            })
            .collect();
    }

    fn count(&mut self, piece: &Piece) {
        self.last_token = Instant::now();
        self.first_token.get_or_insert(self.last_token);
        if let Some(finish) = self.finishes.get_mut(piece.index) {
            finish.clone_from(&piece.finish);
        }
        let Some(entry) = &mut self.entry else { return };
        self.state
            .counters
            .change(&entry.model, |counters| counters.count(piece));
        if let Some(sequence) = entry.sequences.get_mut(piece.index) {
            sequence.completion_tokens += piece.tokens.len();
            sequence
                .accepted
                .extend(piece.steps.iter().map(|step| step.accepted));
            sequence
                .drafted
                .extend(piece.steps.iter().map(|step| step.drafted));
            sequence.finish_reason = piece.finish.as_ref().map(Finish::reason);
        }
    }

    /// What was generated of each sequence so far.
    pub(super) fn sequences(&self) -> &[SequenceEntry] {
        self.entry.as_ref().map_or(&[], |entry| &entry.sequences)
    }

    /// How a sequence ended, if it has.
    pub(super) fn finish(&self, index: usize) -> Option<&Finish> {
        self.finishes.get(index).and_then(Option::as_ref)
    }

    /// Tokens of the prompts.
    pub(super) fn prompt_tokens(&self) -> usize {
        self.entry.as_ref().map_or(0, |entry| entry.prompt_tokens)
    }

    /// Tokens sent, of all sequences.
    pub(super) fn completion_tokens(&self) -> usize {
        self.entry.as_ref().map_or(0, Entry::completion_tokens)
    }

    /// How long it has been on its way.
    pub(super) fn elapsed(&self) -> Duration {
        self.arrived.elapsed()
    }

    /// When things happened; meant for the end.
    pub(super) fn times(&self) -> Times {
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1_000.0;
        let first = self.first_token.unwrap_or(self.last_token);
        let generation = self.last_token - first;
        let tokens = self.completion_tokens();
        let whole = (self.last_token - self.arrived).as_secs_f64();
        Times {
            to_first_token: milliseconds(first - self.arrived),
            generation: milliseconds(generation),
            between_tokens: (tokens > 1).then(|| milliseconds(generation) / (tokens - 1) as f64),
            tokens_per_second: if whole > 0.0 {
                tokens as f64 / whole
            } else {
                0.0
            },
        }
    }

    /// Writes the request into the log as answered whole; `told` says of each sequence whether its acceptance numbers
    /// were told, those missing at the end were not. Called just before the last bytes go out, so that whoever has read a
    /// response finds it in the log.
    pub(super) fn record(&mut self, usage_on_the_wire: bool, told: &[bool]) {
        self.end(Outcome::Complete, usage_on_the_wire, told);
    }

    /// Writes the request into the log as ended by an error of the engine.
    pub(super) fn record_failure(&mut self) {
        self.end(Outcome::Failed, false, &[]);
    }

    fn end(&mut self, outcome: Outcome, usage_on_the_wire: bool, told: &[bool]) {
        if let Some(mut entry) = self.entry.take() {
            for (sequence, told) in entry.sequences.iter_mut().zip(told) {
                sequence.told = *told;
            }
            let payload_on_the_wire = entry.sequences.iter().any(|sequence| sequence.told);
            self.state.forget_abortable(&self.id);
            self.state.counters.change(&entry.model, |counters| {
                counters.running = counters.running.saturating_sub(1);
                if outcome == Outcome::Complete {
                    counters.finish(&entry);
                } else {
                    counters.ended.abort += self
                        .finishes
                        .iter()
                        .filter(|finish| finish.is_none())
                        .count() as u64;
                }
            });
            self.state.log.push(Entry {
                outcome,
                usage_on_the_wire,
                payload_on_the_wire,
                ..entry
            });
        }
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled, false, &[]);
    }
}
