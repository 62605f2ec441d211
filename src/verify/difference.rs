//! What may differ: by design, each with the place that documents it, or by accident.

/// A difference that is there by design.
#[derive(Debug, PartialEq, Eq)]
pub struct Design {
    /// Its name in the result.
    pub name: &'static str,
    /// Where it is documented: a page, and a heading in it.
    pub docs: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
}

const HOP: &str = "docs/transparency.md#what-stays-and-what-a-hop-must-change";
const LIMITS: &str = "docs/transparency.md#limits";

/// All of them.
pub const BY_DESIGN: [Design; 9] = [
    Design {
        name: "hop-by-hop",
        docs: HOP,
        what: "fields of one hop, such as Connection and Keep-Alive, end at the hop",
    },
    Design {
        name: "repeats-adjacent",
        docs: HOP,
        what: "lines of one name are sent next to each other",
    },
    Design {
        name: "http-1-0",
        docs: HOP,
        what: "a request in HTTP/1.0 is answered in HTTP/1.0, without chunks",
    },
    Design {
        name: "close-delimited",
        docs: HOP,
        what: "an answer that ends with its connection is sent in HTTP/1.0",
    },
    Design {
        name: "stripped-length",
        docs: HOP,
        what: "a stream with a length that was stripped is sent in chunks",
    },
    Design {
        name: "connection-kept",
        docs: HOP,
        what: "connections belong to one hop: spectap keeps one that the engine closes",
    },
    Design {
        name: "host-required",
        docs: LIMITS,
        what: "a request in HTTP/1.1 without Host is answered 400",
    },
    Design {
        name: "interim-answers",
        docs: LIMITS,
        what: "100 Continue is spectap's own, and other interim answers are not passed on",
    },
    Design {
        name: "trailers",
        docs: LIMITS,
        what: "trailers pass only where both sides speak of them",
    },
];

/// Something that differs between the direct way and the one through the tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) name: &'static str,
    pub(super) by_design: Option<&'static Design>,
    /// It may come from chance, such as a busy engine, and counts only if it comes again.
    pub(super) may_be_chance: bool,
    pub(super) detail: String,
}

impl Difference {
    /// One that is documented.
    pub(super) fn by_design(name: &'static str, detail: String) -> Self {
        Self {
            name,
            by_design: BY_DESIGN.iter().find(|design| design.name == name),
            may_be_chance: false,
            detail,
        }
    }

    /// One that should not be.
    pub(super) fn by_accident(name: &'static str, detail: String) -> Self {
        Self {
            name,
            by_design: None,
            may_be_chance: false,
            detail,
        }
    }

    /// One that should not be, if it stays.
    pub(super) fn by_chance_perhaps(name: &'static str, detail: String) -> Self {
        Self {
            may_be_chance: true,
            ..Self::by_accident(name, detail)
        }
    }
}

/// Bytes as a person can read them, cut.
pub(super) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let cut = if bytes.len() > MOST { "…" } else { "" };
    format!("`{}{cut}`", bytes[..bytes.len().min(MOST)].escape_ascii())
}
