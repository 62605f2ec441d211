//! Which text of `/metrics` a scraper prefers: content negotiation by the rules of RFC 9110 section 12.5.1.
//!
//! Prometheus sends `application/openmetrics-text;version=1.0.0;q=0.8,…,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`, its
//! protobuf entry first when native histograms are on, and from version 3 an `escaping` parameter.

/// A text that `/metrics` can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exposition {
    /// Prometheus text 0.0.4.
    Classic,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// What a media range says about one text: how exactly it names it, and its quality from 0 to 1.
type Claim = (u8, f32);

/// The text that an Accept header prefers. Classic, unless OpenMetrics has the higher quality, or the same quality and
/// the more exact name (`application/openmetrics-text, */*`). A header that takes neither gets the classic text too,
/// as other exporters do: a person with a browser wants to see something.
pub(super) fn preferred(accept: &str) -> Exposition {
    let claim = |kind: &str, subtype: &str, version: &str| {
        split_unquoted(accept, ',')
            .filter_map(|range| claim(range, kind, subtype, version))
            // The most exact range decides; among equals, the first one.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .unwrap_or((0, 0.0))
    };
    let open = claim("application", "openmetrics-text", "1.0.0");
    let classic = claim("text", "plain", "0.0.4");
    if open.1 > 0.0 && (open.1, open.0) > (classic.1, classic.0) {
        Exposition::OpenMetrics
    } else {
        Exposition::Classic
    }
}

/// What one media range says about a text, if it covers it at all.
fn claim(range: &str, kind: &str, subtype: &str, version: &str) -> Option<Claim> {
    let mut parts = split_unquoted(range, ';').map(str::trim);
    let (wanted_kind, wanted_subtype) = parts.next()?.split_once('/')?;
    let mut exactness = match (wanted_kind, wanted_subtype) {
        ("*", "*") => 1,
        (it, "*") if it.eq_ignore_ascii_case(kind) => 2,
        (it, sub) if it.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subtype) => 3,
        _ => return None,
    };
    let mut quality = 1.0;
    for parameter in parts.filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => quality = value.parse().ok().filter(|q| (0.0..=1.0).contains(q))?,
            "version" if value != version => return None,
            "version" => exactness = 4,
            // `charset` and `escaping` fit whatever they say: names here are plain ASCII.
            _ => {}
        }
    }
    Some((exactness, quality))
}

/// Splits at a separator, but not inside a quoted string.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |character| {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return character == separator && !quoted,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_with_the_higher_quality_wins() {
        use Exposition::{Classic, OpenMetrics};
        for (accept, expected) in [
            ("", Classic),
            ("*/*", Classic),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Classic),
            ("application/json", Classic),
            (
                "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,\
                 application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                OpenMetrics,
            ),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Classic),
            (
                "text/plain;q=0.5, application/openmetrics-text;q=0.4",
                Classic,
            ),
            (
                "text/plain;q=0.4, application/openmetrics-text;q=0.5",
                OpenMetrics,
            ),
            ("application/openmetrics-text", OpenMetrics),
            (
                "APPLICATION/OpenMetrics-Text; Version=\"1.0.0\"",
                OpenMetrics,
            ),
            ("application/openmetrics-text, */*", OpenMetrics),
            ("application/openmetrics-text, text/plain", Classic),
            ("application/*", OpenMetrics),
            ("application/openmetrics-text;q=0", Classic),
            ("application/openmetrics-text;q=0, */*", Classic),
            ("application/openmetrics-text;version=2.0.0", Classic),
            ("application/openmetrics-text;q=nonsense", Classic),
            (
                "text/plain;q=0, application/openmetrics-text;q=0.1",
                OpenMetrics,
            ),
            ("application/openmetrics-text;note=\"a,b;q=0\"", OpenMetrics),
            (",;=/,,", Classic),
        ] {
            assert_eq!(preferred(accept), expected, "{accept}");
        }
    }
}
