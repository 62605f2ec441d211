//! Which value an exchange has, at the edges of the bands.

use super::*;
use crate::stats::tests::observation;

#[test]
fn token_bands_are_powers_of_two_and_the_edge_belongs_below() {
    let band = |tokens| {
        let mut exchange = observation(Vec::new());
        exchange.usage.prompt_tokens = tokens;
        Facet::Prompt.of(&exchange).as_str()
    };
    for (tokens, expected) in [
        (None, "unknown"),
        (Some(0), "up_to_128"),
        (Some(128), "up_to_128"),
        (Some(129), "up_to_256"),
        (Some(1024), "up_to_1024"),
        (Some(1025), "up_to_2048"),
        (Some(131_072), "up_to_131072"),
        (Some(131_073), "above_131072"),
        (Some(u64::MAX), "above_131072"),
    ] {
        assert_eq!(band(tokens), expected, "{tokens:?}");
    }
}

#[test]
fn context_needs_both_counts() {
    let mut exchange = observation(Vec::new());
    exchange.usage.prompt_tokens = Some(100);
    assert_eq!(Facet::Context.of(&exchange).as_str(), "unknown");
    exchange.usage.completion_tokens = Some(100);
    assert_eq!(Facet::Context.of(&exchange).as_str(), "up_to_256");
    exchange.usage.completion_tokens = Some(u64::MAX);
    assert_eq!(Facet::Context.of(&exchange).as_str(), "above_131072");
}

#[test]
fn shares_are_of_a_whole_that_is_known() {
    let band = |part, whole| {
        let mut exchange = observation(Vec::new());
        exchange.usage.cached_tokens = part;
        exchange.usage.prompt_tokens = whole;
        Facet::Cached.of(&exchange).as_str()
    };
    for (part, whole, expected) in [
        (None, Some(8), "unknown"),
        (Some(1), None, "unknown"),
        (Some(0), Some(0), "unknown"),
        (Some(9), Some(8), "unknown"),
        (Some(0), Some(8), "0"),
        (Some(2), Some(8), "up_to_0.25"),
        (Some(3), Some(8), "up_to_0.5"),
        (Some(6), Some(8), "up_to_0.75"),
        (Some(8), Some(8), "up_to_1"),
    ] {
        assert_eq!(band(part, whole), expected, "{part:?} of {whole:?}");
    }
}

#[test]
fn concurrency_is_banded_and_none_counted_is_unknown() {
    for (in_flight, expected) in [
        (0, "unknown"),
        (1, "1"),
        (2, "2"),
        (3, "up_to_4"),
        (256, "up_to_256"),
        (257, "above_256"),
        (u64::MAX, "above_256"),
    ] {
        let mut exchange = observation(Vec::new());
        exchange.in_flight = in_flight;
        assert_eq!(Facet::Concurrency.of(&exchange).as_str(), expected);
    }
}

#[test]
fn every_value_reads_back_from_its_json() {
    for &facet in Facet::VARIANTS {
        assert_eq!(facet.values()[0], "unknown");
        for place in 0..facet.values().len() {
            let value = FacetValue {
                facet,
                place: place as u8,
            };
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<FacetValue>(&text).unwrap(), value);
        }
    }
    let invented = r#"{"by":"stream","value":"perhaps"}"#;
    let error = serde_json::from_str::<FacetValue>(invented).unwrap_err();
    assert!(error.to_string().contains("stream is never perhaps"));
}
