//! `/api/v1/requests`: recent exchanges one by one.

use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use strum::VariantArray;
use ulid::Ulid;

use crate::store::{ListQuery, StaleCursor};

use super::answer::{ApiError, json_of, shown, write};
use super::router::AdminState;

pub(super) async fn list(
    State(state): State<AdminState>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let query = parse(&parameters)?;
    json_of(move || write(&state.ring.list(&query)?)).await
}

pub(super) async fn show(
    State(state): State<AdminState>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let Path(id) = id.map_err(|error| ApiError::bad_request(error.body_text()))?;
    let observation = state.ring.get(&id).ok_or_else(|| {
        ApiError::not_found(format!(
            "no exchange with the id '{}' is kept; only recent ones are",
            shown(&id)
        ))
    })?;
    json_of(move || write(&*observation)).await
}

impl From<StaleCursor> for ApiError {
    fn from(error: StaleCursor) -> Self {
        ApiError::gone(error.to_string())
    }
}

const NAMES: [&str; 7] = [
    "limit",
    "after",
    "model",
    "tag",
    "outcome",
    "acceptance",
    "sort",
];

/// Reads the query; an empty value counts as not given, as in the numbers' queries.
fn parse(parameters: &[(String, String)]) -> Result<ListQuery, ApiError> {
    let mut query = ListQuery::default();
    for (index, (name, value)) in parameters.iter().enumerate() {
        if parameters[..index]
            .iter()
            .any(|(earlier, _)| earlier == name)
        {
            return Err(ApiError::bad_parameter(format!(
                "the parameter '{}' is given twice",
                shown(name)
            )));
        }
        match name.as_str() {
            name if NAMES.contains(&name) && value.is_empty() => {}
            "limit" => query.limit = Some(limit(value)?),
            "after" => query.after = Some(cursor(value)?),
            "model" => query.model = Some(value.clone()),
            "tag" => query.tag = Some(value.clone()),
            "outcome" => query.outcome = Some(one_of(name, value)?),
            "acceptance" => query.acceptance = Some(one_of(name, value)?),
            "sort" => query.sort = one_of(name, value)?,
            _ => {
                return Err(ApiError::bad_parameter(format!(
                    "there is no parameter '{}'; expected one of {}",
                    shown(name),
                    NAMES.join(", ")
                )));
            }
        }
    }
    Ok(query)
}

fn limit(value: &str) -> Result<usize, ApiError> {
    let largest = ListQuery::LARGEST_LIMIT;
    usize::from_str(value)
        .ok()
        .filter(|limit| (1..=largest).contains(limit))
        .ok_or_else(|| {
            bad_value(
                "limit",
                value,
                &format!("a whole number from 1 to {largest}"),
            )
        })
}

fn cursor(value: &str) -> Result<String, ApiError> {
    Ulid::from_string(value)
        .map(|_| value.to_owned())
        .map_err(|_| bad_value("after", value, "the 'next' of an earlier page"))
}

/// The variant of a closed list that has this name.
fn one_of<T>(name: &str, value: &str) -> Result<T, ApiError>
where
    T: VariantArray + Copy + Into<&'static str>,
{
    let name_of = |variant: &T| -> &'static str { (*variant).into() };
    T::VARIANTS
        .iter()
        .find(|variant| name_of(variant) == value)
        .copied()
        .ok_or_else(|| {
            let names: Vec<_> = T::VARIANTS.iter().map(name_of).collect();
            bad_value(name, value, &format!("one of {}", names.join(", ")))
        })
}

fn bad_value(name: &str, value: &str, expected: &str) -> ApiError {
    ApiError::bad_parameter(format!(
        "the parameter '{name}' is '{}'; expected {expected}",
        shown(value)
    ))
}
