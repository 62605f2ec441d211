//! A selection: which part of the traffic is asked about, and the groups that answer.

use super::facet::{Facet, FacetValue};
use super::window::Window;
use super::{Group, GroupKey, Period};

/// Which part of the traffic is asked about. The default is all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Exchanges that ended in this window.
    pub window: Window,
    /// Exchanges whose request arrived in the run of this name.
    pub run: Option<String>,
    /// Groups are also told apart by this facet.
    pub facet: Option<Facet>,
}

/// What a selection comes to.
#[derive(Clone, Debug, Default)]
pub struct Selected {
    /// The groups in the order of their keys.
    pub groups: Vec<SelectedGroup>,
    /// The window's edges; for all traffic from the first start to the last end.
    pub period: Period,
    /// Exchanges that count in a group called `other` because there are too many groups.
    pub folded: u64,
}

/// A group of a selection.
#[derive(Clone, Debug)]
pub struct SelectedGroup {
    /// What its exchanges have in common.
    pub key: GroupKey,
    /// Their value of the facet that was asked for.
    pub facet: Option<FacetValue>,
    /// What they add up to.
    pub figures: Group,
}
