//! `spectap verify`: the same requests to the engine directly and through the tap, over raw sockets, and what differs.
//!
//! ```text
//! requests ──► exchange (direct, direct, through) ──► compare: head | body | timing | end ──► differences ──► report
//! ```
//!
//! Each request goes to the engine twice, so that what the engine itself does not repeat (ids, times, drawn text) is known
//! and left out. It shares no code with the hop: a fault there can't hide behind the same fault here.

mod address;
mod answer;
mod body;
mod compare;
mod difference;
mod exchange;
mod head;
mod learn;
mod render;
mod requests;
mod round;
mod timing;
mod tokens;

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

pub use difference::{BY_DESIGN, Design};

use crate::cli::token;
use crate::cli::verify::{VerifyArgs, VerifyFormat};
use address::Address;
use render::Findings;
use requests::{MAX_TOKENS, Request};

/// How a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing differs but what is there by design.
    Same,
    /// Something else differs.
    Different,
}

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A flag that can't be.
    #[error("invalid value '{value}' for '{flag}': {problem}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// Its value.
        value: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The engine could not be asked.
    #[error("no proper answer from {address} ({flag}): {problem}")]
    Unreachable {
        /// Which side, by its flag.
        flag: &'static str,
        /// Where.
        address: String,
        /// What went wrong.
        problem: String,
    },
    /// The engine names no model.
    #[error("{address}/v1/models names no model ({problem}); say which with --model NAME")]
    Model {
        /// Where.
        address: String,
        /// What it answered instead.
        problem: String,
    },
    /// The engine refused everything.
    #[error(
        "the engine generated nothing: it answered {status} for the model '{model}'; give another with --model, or its key with --api-key-file"
    )]
    NothingGenerated {
        /// Which model was asked for.
        model: String,
        /// What it answered to the first request that generates.
        status: String,
    },
    /// Nobody agreed.
    #[error("nothing was sent; --yes sends it without asking")]
    NotAgreed,
    /// The result could not be written.
    #[error("the result could not be written: {0}")]
    Output(#[from] std::io::Error),
}

/// Compares, and writes the result to `out`; what goes on is told on standard error.
///
/// # Errors
///
/// When it could not be told whether anything differs.
pub fn run(args: &VerifyArgs, out: &mut dyn Write) -> Result<Verdict, VerifyError> {
    let upstream = Address::read("--upstream", &args.upstream)?;
    let through = Address::read("--through", &args.through)?;
    let key = args.api_key_file.as_deref().map(read_key).transpose()?;
    let model = match &args.model {
        Some(model) => model.clone(),
        None => learn::model(&upstream, key.as_deref())?,
    };
    let requests = chosen(
        requests::all(&upstream.authority(), &model, key.as_deref()),
        &args.only,
    )?;
    announce(&requests, args)?;
    let mut findings = Findings::new(args, model);
    for request in &requests {
        eprint!("{}: ", request.name);
        let compared = round::compare(request, &upstream, &through)?;
        eprintln!("{}", compared.word());
        findings.take(request.name, compared);
    }
    let text = match args.format {
        VerifyFormat::Text => findings.text(),
        VerifyFormat::Json => findings.json(),
    };
    writeln!(out, "{text}")?;
    findings.verdict()
}

/// The requests of these names; all of them for none.
fn chosen(mut requests: Vec<Request>, only: &[String]) -> Result<Vec<Request>, VerifyError> {
    for name in only {
        if !requests.iter().any(|request| request.name == name) {
            let names: Vec<&str> = requests.iter().map(|request| request.name).collect();
            return Err(VerifyError::Flag {
                flag: "--only",
                value: name.clone(),
                problem: format!("write names of {}", names.join(", ")),
            });
        }
    }
    if !only.is_empty() {
        requests.retain(|request| only.iter().any(|name| name == request.name));
    }
    Ok(requests)
}

/// Says what will be sent, and asks whether it may be.
fn announce(requests: &[Request], args: &VerifyArgs) -> Result<(), VerifyError> {
    let generating = requests.iter().filter(|request| request.generates).count();
    eprintln!(
        "{} requests, each twice to {} and once to {}; {generating} of them generate, at most {MAX_TOKENS} tokens each: {} tokens \
         in all. A request whose answers do not match is sent again, at most twice.",
        requests.len(),
        args.upstream,
        args.through,
        generating as u64 * 3 * MAX_TOKENS,
    );
    if args.yes {
        return Ok(());
    }
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(VerifyError::NotAgreed);
    }
    eprint!("Go on? [y/N] ");
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(VerifyError::NotAgreed)
    }
}

fn read_key(path: &Path) -> Result<String, VerifyError> {
    token::read(path).map_err(|problem| VerifyError::Flag {
        flag: "--api-key-file",
        value: path.display().to_string(),
        problem,
    })
}
