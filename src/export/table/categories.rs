//! The per-category matrix as tables, in the form that AIPerf's SPEED-Bench report has.

use super::grid;
use crate::export::categories::{Kind, Matrix, cells};

/// Both tables, length and rate; each cell has its number of requests below it.
pub fn categories(matrix: &Matrix, mark: Option<&str>) -> String {
    let mut text = String::new();
    for kind in [Kind::Length, Kind::Rate] {
        let mut title = kind.title().to_owned();
        if let Some(mark) = mark {
            title.push_str(", ");
            title.push_str(mark);
        }
        let mut header = vec!["Model"];
        header.extend(matrix.categories.iter().map(String::as_str));
        header.extend(["Overall", "Pooled"]);
        let rows: Vec<Vec<String>> = matrix
            .models
            .iter()
            .map(|model| {
                let cells = cells(matrix, model, kind);
                let shown = cells.into_iter().map(|cell| {
                    let value = cell.value.map_or_else(|| "-".to_owned(), grid::number);
                    match cell.n {
                        Some(n) => format!("{value}\nn {n}"),
                        None => value,
                    }
                });
                std::iter::once(model.model.clone()).chain(shown).collect()
            })
            .collect();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&grid::render(&title, &header, &rows));
    }
    text.push_str(
        "Overall is the mean of the cells present, as AIPerf has it; Pooled counts every verify step once.\n",
    );
    text
}
