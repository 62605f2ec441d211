//! JSON as the adapters read it, whoever parsed it.
//!
//! The tap's own tree of a reply stands behind it, which is made for few look-ups; and, in tests, `serde_json`'s map, which
//! is made for many and costs more to build than all that is read of it.

use serde_json::Number;

/// A JSON object.
pub trait Object {
    /// The value of a member; of several with one name the last.
    fn get(&self, name: &str) -> Option<Json<'_>>;

    /// Shows every member in the order in which they were written.
    fn each(&self, show: &mut dyn FnMut(&str, Json<'_>));

    /// Number of members.
    fn len(&self) -> usize;

    /// Whether it has no member.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A JSON list.
pub trait List {
    /// The element at this position.
    fn at(&self, position: usize) -> Option<Json<'_>>;

    /// Number of elements.
    fn length(&self) -> usize;
}

/// A JSON value.
#[derive(Clone, Copy)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(&'a Number),
    /// A string.
    Text(&'a str),
    /// A list.
    List(&'a dyn List),
    /// An object.
    Object(&'a dyn Object),
}

impl<'a> Json<'a> {
    /// The object that it is.
    pub fn as_object(self) -> Option<&'a dyn Object> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The value of a member of the object that it is.
    pub fn get(self, name: &str) -> Option<Json<'a>> {
        self.as_object()?.get(name)
    }

    /// The string that it is.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer that it is, from 0 on.
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Json::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    /// The number that it is.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Json::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        matches!(self, Json::Null)
    }

    /// Whether it is a string.
    pub fn is_text(self) -> bool {
        matches!(self, Json::Text(_))
    }

    /// Whether it is a list.
    pub fn is_list(self) -> bool {
        matches!(self, Json::List(_))
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        matches!(self, Json::Object(_))
    }
}

/// The elements of a list; none of what is no list.
pub fn elements<'a>(value: Option<Json<'a>>) -> impl Iterator<Item = Json<'a>> {
    let list = match value {
        Some(Json::List(list)) => Some(list),
        _ => None,
    };
    list.into_iter()
        .flat_map(|list| (0..list.length()).filter_map(|position| list.at(position)))
}

#[cfg(any(test, feature = "fuzzing"))]
mod parsed {
    use serde_json::{Map, Value};

    use super::{Json, List, Object};

    fn json(value: &Value) -> Json<'_> {
        match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => Json::Number(number),
            Value::String(text) => Json::Text(text),
            Value::Array(list) => Json::List(list),
            Value::Object(object) => Json::Object(object),
        }
    }

    impl Object for Map<String, Value> {
        fn get(&self, name: &str) -> Option<Json<'_>> {
            self.get(name).map(json)
        }

        fn each(&self, show: &mut dyn FnMut(&str, Json<'_>)) {
            self.iter()
                .for_each(|(name, value)| show(name, json(value)));
        }

        fn len(&self) -> usize {
            self.len()
        }
    }

    impl List for Vec<Value> {
        fn at(&self, position: usize) -> Option<Json<'_>> {
            self.get(position).map(json)
        }

        fn length(&self) -> usize {
            self.len()
        }
    }
}
