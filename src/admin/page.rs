//! `/` and `/page/…`: the page. It is in the binary, holds no data, and asks the API for everything that it shows.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::OnceLock;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::answer::{ApiError, shown};
use super::index;

/// Nothing from elsewhere, nothing inline, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SHELL: &str = "index.html";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("page/", $name)).as_slice())),*]
    };
}

/// Name and content of every file.
const FILES: [(&str, &[u8]); 23] = files![
    "index.html",
    "page.css",
    "icon.svg",
    "main.js",
    "categories.js",
    "compare.js",
    "controls.js",
    "dom.js",
    "drawer.js",
    "facets.js",
    "feed.js",
    "figures.js",
    "findings.js",
    "format.js",
    "heatmap.js",
    "mini.js",
    "reasons.js",
    "relation.js",
    "requests.js",
    "session.js",
    "stats.js",
    "survival.js",
    "view.js",
];

struct File {
    plain: &'static [u8],
    gzip: Bytes,
    /// A quoted entity tag of the content.
    tag: String,
    media_type: &'static str,
}

/// The files, packed once.
fn files() -> &'static BTreeMap<&'static str, File> {
    static PACKED: OnceLock<BTreeMap<&'static str, File>> = OnceLock::new();
    PACKED.get_or_init(|| {
        let files = FILES.iter();
        files
            .map(|&(name, plain)| (name, pack(name, plain)))
            .collect()
    })
}

fn pack(name: &str, plain: &'static [u8]) -> File {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // A vector takes everything.
    let packed = encoder.write_all(plain).and_then(|()| encoder.finish());
    let tag = Sha256::digest(plain)[..12]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    File {
        plain,
        gzip: packed.unwrap_or_default().into(),
        tag: format!("\"{tag}\""),
        media_type: match name.rsplit_once('.') {
            Some((_, "html")) => "text/html; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        },
    }
}

/// A browser gets the page; who asks for anything else, such as a person with curl, gets the list of paths.
pub(super) async fn shell(headers: HeaderMap) -> Response {
    let accepted = headers.get_all(ACCEPT).iter();
    let wants_page = accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"));
    match files().get(SHELL) {
        Some(file) if wants_page => answer(file, &headers),
        _ => ([(VARY, "Accept")], index::TEXT).into_response(),
    }
}

pub(super) async fn file(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = files().get(name.as_str()).filter(|_| name != SHELL);
    let file = file
        .ok_or_else(|| ApiError::not_found(format!("the page has no file '{}'", shown(&name))))?;
    Ok(answer(file, &headers))
}

fn answer(file: &File, asked: &HeaderMap) -> Response {
    let is_known = asked
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|tags| {
            tags.split(',')
                .any(|tag| tag.trim().trim_start_matches("W/") == file.tag)
        });
    let takes_gzip = asked
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(is_gzip);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else if takes_gzip && !file.gzip.is_empty() {
        ([(CONTENT_ENCODING, "gzip")], file.gzip.clone()).into_response()
    } else {
        file.plain.into_response()
    };
    let headers = response.headers_mut();
    let mut put = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    put(CONTENT_TYPE, file.media_type);
    put(ETAG, &file.tag);
    // Kept, but asked about each time: the next version of spectap has another page.
    put(CACHE_CONTROL, "no-cache");
    put(VARY, "Accept, Accept-Encoding");
    put(CONTENT_SECURITY_POLICY, POLICY);
    put(REFERRER_POLICY, "no-referrer");
    response
}

/// Whether a member of Accept-Encoding takes gzip.
fn is_gzip(member: &str) -> bool {
    let mut parts = member.split(';').map(str::trim);
    let is_named = parts
        .next()
        .is_some_and(|coding| coding.eq_ignore_ascii_case("gzip"));
    let is_refused = parts.any(|part| {
        let quality = part
            .strip_prefix("q=")
            .and_then(|it| it.parse::<f32>().ok());
        quality == Some(0.0)
    });
    is_named && !is_refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let (plain, gzip) = files().values().fold((0, 0), |(plain, gzip), file| {
            (plain + file.plain.len(), gzip + file.gzip.len())
        });
        assert!(plain < 250_000, "{plain}");
        assert!(gzip < plain / 2, "{gzip} of {plain}");
    }

    #[test]
    fn every_file_that_the_page_names_is_in_the_binary() {
        let mut names = 0;
        for file in files().values() {
            let text = std::str::from_utf8(file.plain).unwrap();
            let imports = text.split("from './").skip(1);
            let links = text.split("\"page/").skip(1);
            for name in imports.chain(links) {
                let name = name.split(['\'', '"']).next().unwrap();
                assert!(files().contains_key(name), "{name}");
                names += 1;
            }
        }
        assert!(names > 20, "{names}");
    }

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        for (member, takes) in [
            ("gzip", true),
            (" GZIP ; q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("gzipped", false),
        ] {
            assert_eq!(is_gzip(member), takes, "{member}");
        }
    }
}
