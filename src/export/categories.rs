//! The per-category acceptance matrix of SPEED-Bench: a row per model, a column per tag.
//!
//! A cell is token-weighted, 1 + Σa/Σs or Σa/Σd (a fraction), over what AIPerf would count. `Overall` is the unweighted
//! mean of the cells present, which is what AIPerf prints; `Pooled` is the same formula over all cells' requests.

use std::collections::BTreeMap;

use serde::Serialize;

use super::csv;
use super::snapshot::Snapshot;
use crate::stats::Pooled;

/// The matrix; models and categories by name.
#[derive(Clone, Debug, Serialize)]
pub struct Matrix {
    /// All categories that some model has.
    pub categories: Vec<String>,
    /// The rows.
    pub models: Vec<Row>,
}

/// One model.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub model: String,
    /// Tokens per verify step, the bonus token included.
    pub acceptance_length: Figures,
    /// Accepted / drafted, 0..1.
    pub draft_acceptance_rate: Figures,
}

/// One figure of a model.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Unit of every value.
    pub unit: &'static str,
    /// By category.
    pub categories: BTreeMap<String, Value>,
    /// Unweighted mean of the categories' values.
    pub overall: Option<f64>,
    /// The figure of all categories' requests together.
    pub pooled: Option<f64>,
    /// Requests in it.
    pub n: u64,
}

/// A value and the requests that it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    /// The value.
    pub value: f64,
    /// Requests.
    pub n: u64,
}

/// Which figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Acceptance length.
    Length,
    /// Draft acceptance rate.
    Rate,
}

/// A cell as it is printed; `n` is absent where it would repeat another cell's.
pub(super) struct Cell {
    pub(super) value: Option<f64>,
    pub(super) n: Option<u64>,
}

impl Kind {
    pub(super) fn title(self) -> &'static str {
        match self {
            Kind::Length => "Acceptance Length by category (ratio)",
            Kind::Rate => "Draft Acceptance Rate by category (fraction)",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Length => "accept_length",
            Kind::Rate => "accept_rate",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Kind::Length => "ratio",
            Kind::Rate => "fraction",
        }
    }

    /// Requests that it is made of.
    fn n(self, pooled: &Pooled) -> u64 {
        match self {
            Kind::Length => pooled.records_with_steps,
            Kind::Rate => pooled.records,
        }
    }

    fn of(self, pooled: &Pooled) -> Option<f64> {
        match self {
            Kind::Length => pooled.length(),
            Kind::Rate => pooled.rate(),
        }
    }
}

/// The matrix of a snapshot's tags; absent where nothing is tagged.
pub fn of_snapshot(snapshot: &Snapshot) -> Option<Matrix> {
    let mut cells: BTreeMap<String, BTreeMap<String, Pooled>> = BTreeMap::new();
    for group in &snapshot.groups {
        let Some(tag) = &group.key.tag else { continue };
        if group.figures.aiperf.pooled.records == 0 {
            continue;
        }
        let model = group
            .key
            .model
            .clone()
            .unwrap_or_else(|| "unknown".to_owned());
        let row = cells.entry(model).or_default();
        row.entry(tag.clone())
            .or_default()
            .merge(&group.figures.aiperf.pooled);
    }
    if cells.is_empty() {
        return None;
    }
    let mut categories: Vec<String> = cells.values().flat_map(BTreeMap::keys).cloned().collect();
    categories.sort();
    categories.dedup();
    in_known_order(&mut categories);
    let models = cells
        .into_iter()
        .map(|(model, row)| Row {
            model,
            acceptance_length: figures(Kind::Length, &row),
            draft_acceptance_rate: figures(Kind::Rate, &row),
        })
        .collect();
    Some(Matrix { categories, models })
}

/// SPEED-Bench's throughput splits stand by entropy; its other categories are in alphabetical order anyway.
fn in_known_order(categories: &mut [String]) {
    const BY_ENTROPY: [&str; 3] = ["low_entropy", "mixed", "high_entropy"];
    let place = |name: &String| BY_ENTROPY.iter().position(|known| known == name);
    if categories.iter().all(|name| place(name).is_some()) {
        categories.sort_by_key(place);
    }
}

fn figures(kind: Kind, row: &BTreeMap<String, Pooled>) -> Figures {
    let mut all = Pooled::default();
    let mut categories = BTreeMap::new();
    for (tag, pooled) in row {
        all.merge(pooled);
        if let Some(value) = kind.of(pooled) {
            let n = kind.n(pooled);
            categories.insert(tag.clone(), Value { value, n });
        }
    }
    let sum: f64 = categories.values().map(|cell| cell.value).sum();
    Figures {
        unit: kind.unit(),
        overall: (!categories.is_empty()).then(|| sum / categories.len() as f64),
        pooled: kind.of(&all),
        n: kind.n(&all),
        categories,
    }
}

/// The cells of a row in the order of the columns: categories, overall, pooled.
pub(super) fn cells(matrix: &Matrix, row: &Row, kind: Kind) -> Vec<Cell> {
    let figures = match kind {
        Kind::Length => &row.acceptance_length,
        Kind::Rate => &row.draft_acceptance_rate,
    };
    let of_categories = matrix.categories.iter().map(|name| {
        let cell = figures.categories.get(name);
        Cell {
            value: cell.map(|cell| cell.value),
            n: cell.map(|cell| cell.n),
        }
    });
    let overall = Cell {
        value: figures.overall,
        n: None,
    };
    let pooled = Cell {
        value: figures.pooled,
        n: Some(figures.n),
    };
    of_categories.chain([overall, pooled]).collect()
}

/// As CSV: AIPerf's columns, and in front of them which figure it is, behind them the pooled value and n.
pub fn to_csv(matrix: &Matrix, mark: Option<&str>) -> String {
    let mut header = vec!["Metric", "Model"];
    header.extend(matrix.categories.iter().map(String::as_str));
    header.extend(["Overall", "Pooled", "n"]);
    let mut text = csv::line(header);
    for kind in [Kind::Length, Kind::Rate] {
        let name = match mark {
            Some(mark) => format!("{}, {mark}", kind.name()),
            None => kind.name().to_owned(),
        };
        for row in &matrix.models {
            let mut line = vec![name.clone(), row.model.clone()];
            let cells = cells(matrix, row, kind);
            let n = cells.last().and_then(|pooled| pooled.n).unwrap_or(0);
            for cell in cells {
                line.push(
                    cell.value
                        .map(|value| format!("{value:.2}"))
                        .unwrap_or_default(),
                );
            }
            line.push(n.to_string());
            text.push_str(&csv::line(line.iter().map(String::as_str)));
        }
    }
    text
}

/// As markdown tables.
pub fn to_markdown(matrix: &Matrix, mark: Option<&str>) -> String {
    let mut text = String::new();
    for kind in [Kind::Length, Kind::Rate] {
        let mut header = vec!["Model".to_owned()];
        header.extend(matrix.categories.iter().cloned());
        header.extend(["Overall".to_owned(), "Pooled".to_owned()]);
        let rows: Vec<Vec<String>> = matrix
            .models
            .iter()
            .map(|row| {
                let shown =
                    cells(matrix, row, kind)
                        .into_iter()
                        .map(|cell| match (cell.value, cell.n) {
                            (None, _) => "-".to_owned(),
                            (Some(value), None) => format!("{value:.2}"),
                            (Some(value), Some(n)) => format!("{value:.2} (n {n})"),
                        });
                std::iter::once(row.model.clone()).chain(shown).collect()
            })
            .collect();
        let mut title = kind.title().to_owned();
        if let Some(mark) = mark {
            title.push_str(", ");
            title.push_str(mark);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&super::markdown::table(&title, &header, &rows));
    }
    text
}
