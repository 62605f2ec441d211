//! Exemplars beside the series: the classes of the `prometheus` crate have no place for them.

use prometheus::proto::LabelPair;

use crate::stats::Exemplar;

/// The exemplars of one scrape.
#[derive(Clone, Debug, Default)]
pub struct ExemplarTable(Vec<Row>);

#[derive(Clone, Debug)]
struct Row {
    series: &'static str,
    labels: Vec<LabelPair>,
    /// Upper bounds of the buckets, and the exchanges that stand for them.
    buckets: Vec<(f64, Exemplar)>,
}

impl ExemplarTable {
    /// Adds those of one histogram.
    pub(super) fn add(
        &mut self,
        series: &'static str,
        labels: Vec<LabelPair>,
        buckets: Vec<(f64, Exemplar)>,
    ) {
        self.0.push(Row {
            series,
            labels,
            buckets,
        });
    }

    /// That of a bucket.
    pub(super) fn of(&self, series: &str, labels: &[LabelPair], bound: f64) -> Option<&Exemplar> {
        let row = self
            .0
            .iter()
            .find(|row| row.series == series && row.labels == labels)?;
        let bucket = row.buckets.iter().find(|(own, _)| *own == bound);
        bucket.map(|(_, exemplar)| exemplar)
    }
}
