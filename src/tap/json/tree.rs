//! The tree of a pruned copy, made for a few look-ups: members stand in the order in which they were written, and text that
//! needs no change is borrowed.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
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
pub(super) struct Members<'t>(pub(super) Vec<(Name<'t>, Node<'t>)>);

/// A member's name; borrowed unless it holds an escape.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Name<'t>(#[serde(borrow)] pub(super) Cow<'t, str>);

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
        let found = self.0.iter().rev().find(|(known, _)| known.0 == name)?;
        Some(found.1.json())
    }

    fn each(&self, show: &mut dyn FnMut(&str, Json<'_>)) {
        for (name, value) in &self.0 {
            show(&name.0, value.json());
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'t> Deserialize<'t> for Node<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Build)
    }
}

struct Build;

impl<'t> Visitor<'t> for Build {
    type Value = Node<'t>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Number::from_f64(value)
            .map(Node::Number)
            .ok_or_else(|| E::custom("no finite number"))
    }

    fn visit_borrowed_str<E>(self, value: &'t str) -> Result<Self::Value, E> {
        Ok(Node::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Node::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(Nodes(nodes)))
    }

    fn visit_map<A: MapAccess<'t>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(Members(members)))
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
                .map(|(name, value)| (name.0, Self::from(value)))
                .collect(),
        }
    }
}
