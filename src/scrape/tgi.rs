//! TGI's series: one histogram with one observation per decode step, of the drafts that it accepted. Its buckets are the
//! acceptance histogram; how many tokens were drafted is not told.

use super::schema::{Meaning, Schema};

pub(super) const SCHEMA: Schema = Schema {
    engine: "tgi",
    series: &[
        ("tgi_request_skipped_tokens_count", Meaning::Steps),
        ("tgi_request_skipped_tokens_sum", Meaning::Accepted),
        ("tgi_request_skipped_tokens_bucket", Meaning::StepsUpTo),
        ("tgi_request_success", Meaning::Requests),
    ],
    catch: Some(
        "drafted tokens are not counted, so there is no acceptance rate; steps without drafts count as steps",
    ),
    positions_tell_k: false,
    version: Some(("/info", "version")),
};
