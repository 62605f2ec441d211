//! The tree of a pruned copy, made for a few look-ups: members stand in the order in which they were written, and text that
//! needs no change is borrowed.

use std::borrow::Cow;

use serde_json::Number;

use crate::engines::{Json, List, Object};

/// A value of the copy.
#[derive(Debug)]
pub(super) enum Node<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'t, str>),
    List(Nodes<'t>),
    Object(Members<'t>),
}

/// The elements of a list.
#[derive(Debug)]
pub(super) struct Nodes<'t>(pub(super) Vec<Node<'t>>);

/// The members of an object, repeated names included.
#[derive(Debug)]
pub(super) struct Members<'t>(pub(super) Vec<(Cow<'t, str>, Node<'t>)>);

impl Node<'_> {
    pub(super) fn json(&self) -> Json<'_> {
        match self {
            Node::Null => Json::Null,
            Node::Bool(value) => Json::Bool(*value),
            Node::Number(number) => Json::Number(number),
            Node::Text(text) => Json::Text(text),
            Node::List(list) => Json::List(list),
            Node::Object(object) => Json::Object(object),
        }
    }
}

impl List for Nodes<'_> {
    fn at(&self, position: usize) -> Option<Json<'_>> {
        self.0.get(position).map(Node::json)
    }

    fn length(&self) -> usize {
        self.0.len()
    }
}

impl Object for Members<'_> {
    fn get(&self, name: &str) -> Option<Json<'_>> {
        let found = self.0.iter().rev().find(|(known, _)| known == name)?;
        Some(found.1.json())
    }

    fn each(&self, show: &mut dyn FnMut(&str, Json<'_>)) {
        for (name, value) in &self.0 {
            show(name, value.json());
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// The same as `serde_json` would have it.
#[cfg(any(test, feature = "fuzzing"))]
impl From<Node<'_>> for serde_json::Value {
    fn from(node: Node<'_>) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(value) => value.into(),
            Node::Number(number) => Self::Number(number),
            Node::Text(text) => text.into(),
            Node::List(list) => list.0.into_iter().map(Self::from).collect(),
            Node::Object(object) => object
                .0
                .into_iter()
                .map(|(name, value)| (name, Self::from(value)))
                .collect(),
        }
    }
}
