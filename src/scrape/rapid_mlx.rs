//! Rapid-MLX's series, with labels `family` and `method`; nothing of it is in response bodies.

use super::schema::{Meaning, Schema, gauge};

pub(super) const SCHEMA: Schema = Schema {
    engine: "rapid_mlx",
    series: &[
        ("rapid_mlx_spec_decode_verify_calls_total", Meaning::Steps),
        ("rapid_mlx_spec_decode_attempts_total", Meaning::Drafted),
        ("rapid_mlx_spec_decode_accepts_total", Meaning::Accepted),
        (
            "rapid_mlx_spec_decode_accepted_by_depth_total",
            Meaning::AcceptedAt("depth"),
        ),
        (
            "rapid_mlx_spec_decode_accept_ratio",
            gauge("acceptance rate, as the engine averages it"),
        ),
    ],
    catch: None,
    positions_tell_k: false,
    version: None,
};
