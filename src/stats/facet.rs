//! Facets: properties of an exchange with few fixed values, read from its request and its token counts, never from its
//! content. Each has `unknown` among its values.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use strum::VariantArray;

use crate::observation::{Observation, OutputFormat, TemperatureBand};

/// A property of an exchange.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Facet {
    /// Prompt and completion tokens together.
    Context,
    /// Prompt tokens.
    Prompt,
    /// Share of the prompt that came from the prefix cache.
    Cached,
    /// Sampling temperature.
    Temperature,
    /// What shape the reply must have.
    Format,
    /// Share of the completion that was reasoning.
    Reasoning,
    /// Whether the client asked for a stream.
    Stream,
    /// Exchanges in flight at the tap when this one arrived, itself included.
    Concurrency,
}

/// One of the values of a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FacetValue {
    facet: Facet,
    /// Place among the facet's values, so that bands sort by size and not by name.
    place: u8,
}

const UNKNOWN: &str = "unknown";

const FIRST_TOKEN_BAND: u64 = 128;
const TOKENS: &[&str] = &[
    UNKNOWN,
    "up_to_128",
    "up_to_256",
    "up_to_512",
    "up_to_1024",
    "up_to_2048",
    "up_to_4096",
    "up_to_8192",
    "up_to_16384",
    "up_to_32768",
    "up_to_65536",
    "up_to_131072",
    "above_131072",
];
const SHARES: &[&str] = &[
    UNKNOWN,
    "0",
    "up_to_0.25",
    "up_to_0.5",
    "up_to_0.75",
    "up_to_1",
];
const TEMPERATURES: &[&str] = &[UNKNOWN, "default", "0", "up_to_0.7", "above_0.7"];
const FORMATS: &[&str] = &[UNKNOWN, "none", "json", "schema", "tools"];
const STREAMS: &[&str] = &[UNKNOWN, "false", "true"];
const IN_FLIGHT: &[&str] = &[
    UNKNOWN,
    "1",
    "2",
    "up_to_4",
    "up_to_8",
    "up_to_16",
    "up_to_32",
    "up_to_64",
    "up_to_128",
    "up_to_256",
    "above_256",
];

impl Facet {
    /// The name in a query and in a group's key.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// All its values, `unknown` first, then in their natural order.
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Facet::Context | Facet::Prompt => TOKENS,
            Facet::Cached | Facet::Reasoning => SHARES,
            Facet::Temperature => TEMPERATURES,
            Facet::Format => FORMATS,
            Facet::Stream => STREAMS,
            Facet::Concurrency => IN_FLIGHT,
        }
    }

    /// The value that an exchange has.
    pub fn of(self, observation: &Observation) -> FacetValue {
        let usage = &observation.usage;
        let place = match self {
            Facet::Context => token_band(
                usage
                    .prompt_tokens
                    .zip(usage.completion_tokens)
                    .map(|(prompt, completion)| prompt.saturating_add(completion)),
            ),
            Facet::Prompt => token_band(usage.prompt_tokens),
            Facet::Cached => share_band(usage.cached_tokens, usage.prompt_tokens),
            Facet::Reasoning => share_band(usage.reasoning_tokens, usage.completion_tokens),
            Facet::Temperature => match observation.facets.temperature {
                TemperatureBand::Unknown => 0,
                TemperatureBand::Default => 1,
                TemperatureBand::Zero => 2,
                TemperatureBand::UpTo07 => 3,
                TemperatureBand::Above07 => 4,
            },
            Facet::Format => match observation.facets.format {
                OutputFormat::Unknown => 0,
                OutputFormat::None => 1,
                OutputFormat::Json => 2,
                OutputFormat::Schema => 3,
                OutputFormat::Tools => 4,
            },
            Facet::Stream => 1 + u8::from(observation.stream),
            Facet::Concurrency => doubling_band(observation.in_flight, 1, IN_FLIGHT.len()),
        };
        FacetValue { facet: self, place }
    }
}

/// A band of the count: up to `first`, up to twice that, and so on; the last one of `bands` is open. 0 is unknown.
fn doubling_band(count: u64, first: u64, bands: usize) -> u8 {
    if count == 0 {
        return 0;
    }
    // Far beyond every band, and safe to double.
    let count = count.min(1 << 62);
    let doublings = count.div_ceil(first).next_power_of_two().trailing_zeros() as usize;
    u8::try_from((1 + doublings).min(bands - 1)).unwrap_or(0)
}

fn token_band(tokens: Option<u64>) -> u8 {
    // No tokens at all is a known small number.
    tokens.map_or(0, |tokens| {
        doubling_band(tokens.max(1), FIRST_TOKEN_BAND, TOKENS.len())
    })
}

fn share_band(part: Option<u64>, whole: Option<u64>) -> u8 {
    let (Some(part), Some(whole)) = (part, whole) else {
        return 0;
    };
    match part as f64 / whole as f64 {
        0.0 => 1,
        share if share <= 0.25 => 2,
        share if share <= 0.5 => 3,
        share if share <= 0.75 => 4,
        share if share <= 1.0 => 5,
        // More than all of it, or a share of nothing.
        _ => 0,
    }
}

impl FacetValue {
    /// Whose value it is.
    pub fn facet(self) -> Facet {
        self.facet
    }

    /// The value's name.
    pub fn as_str(self) -> &'static str {
        self.facet
            .values()
            .get(usize::from(self.place))
            .copied()
            .unwrap_or(UNKNOWN)
    }

    /// Every facet's value of an exchange.
    pub(super) fn all_of(observation: &Observation) -> impl Iterator<Item = FacetValue> {
        Facet::VARIANTS.iter().map(|facet| facet.of(observation))
    }
}

#[derive(Serialize, Deserialize)]
struct Written<'a> {
    by: Facet,
    #[serde(borrow)]
    value: std::borrow::Cow<'a, str>,
}

impl Serialize for FacetValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (by, value) = (self.facet, self.as_str().into());
        Written { by, value }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FacetValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { by, value } = Written::deserialize(deserializer)?;
        let place = by.values().iter().position(|name| *name == value);
        place
            .and_then(|place| u8::try_from(place).ok())
            .map(|place| Self { facet: by, place })
            .ok_or_else(|| D::Error::custom(format!("{} is never {value}", by.as_str())))
    }
}

#[cfg(test)]
mod tests;
