//! `/api/v1/compare`: two parts of the traffic side by side, by the code of `spectap compare`.

use axum::extract::{Query as Parameters, State};
use axum::http::Uri;
use axum::response::Response;

use crate::export::compare::{Side, comparison};
use crate::export::{Query, snapshot};
use crate::stats::compare::RunFigures;
use crate::stats::interval::SEED;

use super::answer::{ApiError, json_of, shown, write};
use super::numbers;
use super::router::AdminState;

pub(super) async fn show(
    State(state): State<AdminState>,
    Parameters(parameters): Parameters<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let mut sides = [None, None];
    for (name, value) in &parameters {
        let side = match name.as_str() {
            "base" => &mut sides[0],
            "other" => &mut sides[1],
            _ => {
                return Err(ApiError::bad_parameter(format!(
                    "there is no parameter '{}'; expected base and other",
                    shown(name)
                )));
            }
        };
        if side.replace(part(&state, name, value)?).is_some() {
            return Err(ApiError::bad_parameter(format!(
                "the parameter '{name}' is given twice"
            )));
        }
    }
    let [Some(base), Some(other)] = sides else {
        return Err(ApiError::bad_parameter(
            "base and other must both be given, each as the encoded query of a part, such as base=run%3Dk4",
        ));
    };
    json_of(move || {
        let [base, other] = [base, other].map(|(name, query)| side(&state, name, &query));
        write(&comparison(&base, &[other], None, SEED))
    })
    .await
}

/// A part as it is written (`run=k4&tag=code`), and what it asks for.
fn part(state: &AdminState, side: &str, value: &str) -> Result<(String, Query), ApiError> {
    let unreadable = || {
        ApiError::bad_parameter(format!(
            "{side}={}: should be an encoded query such as run%3Dk4",
            shown(value)
        ))
    };
    let encoded: String = value.replace(' ', "%20");
    let uri: Uri = format!("/?{encoded}").parse().map_err(|_| unreadable())?;
    let pairs =
        Parameters::<Vec<(String, String)>>::try_from_uri(&uri).map_err(|_| unreadable())?;
    Ok((value.to_owned(), numbers::parse(state, &pairs)?))
}

fn side(state: &AdminState, name: String, query: &Query) -> Side {
    let snapshot = snapshot(&state.statistics, query);
    let groups = snapshot.groups.iter();
    Side {
        name,
        figures: RunFigures::of(groups.map(|group| (&group.key, &group.figures))),
        exchanges: Vec::new(),
        is_forced: state.manifest.is_forced(),
    }
}
