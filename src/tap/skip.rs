//! Why a request is left as it came although the numbers would need an option in it.

/// Why a streamed request on a route that takes the option is left as it came. The label `reason` of
/// `spectap_injections_skipped_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[strum(serialize_all = "snake_case")]
pub(super) enum Skip {
    /// Injection is off.
    Off,
    /// The content type is not JSON, or the body is no JSON object.
    NotJson,
    /// The body has a content coding.
    Encoding,
    /// The body is larger than what is held, or has trailers.
    TooLarge,
    /// The memory for held bodies is used up.
    Memory,
    /// A digest or signature covers the body.
    Signed,
    /// A member that decides stands there twice.
    DuplicateMember,
    /// `stream_options` or a member of it is of no kind that can be completed.
    OptionsShape,
    /// `continuous_usage_stats` alone, on an engine that is not known as vLLM.
    ContinuousUsage,
    /// Several sequences, and the fingerprint that each must get back is not known yet.
    FingerprintUnknown,
    /// The engine sends usage unasked on this route.
    SentUnasked,
    /// The engine refused the option on this route.
    Refused,
    /// The engine is known as one that has no use for the option.
    Engine,
    /// The engine compresses its answers, so that nothing could be taken out again.
    ResponseEncoding,
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_reason_has_its_line_in_the_page_on_metrics() {
        let page = include_str!("../../docs/metrics.md");
        let section = page
            .split("`spectap_injections_skipped_total`:")
            .nth(1)
            .unwrap()
            .split("`spectap_strips_skipped_total`:")
            .next()
            .unwrap();
        let told: Vec<&str> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .skip(1)
            .collect();
        let given: Vec<&str> = Skip::VARIANTS.iter().map(|&skip| skip.into()).collect();
        assert_eq!(told, given);
    }
}
