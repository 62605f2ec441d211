//! Which requests are looked at, by method and path alone.

use http::Method;

use crate::observation::Route;

/// Path endings and their routes, longest first where one ends in another. Any prefix may stand before them, as
/// gateways mount engines below a path of their own.
const SUFFIXES: [(&str, Route); 11] = [
    ("/v1/chat/completions", Route::ChatCompletions),
    ("/v1/completions", Route::Completions),
    ("/v1/responses", Route::Responses),
    ("/v1/messages", Route::Messages),
    ("/inference/v1/generate", Route::Generate),
    ("/generate", Route::Generate),
    ("/completion", Route::CompletionNative),
    // LM Studio's own, and llama.cpp's without a version.
    ("/chat/completions", Route::ChatCompletions),
    ("/api/v0/completions", Route::Completions),
    ("/api/v1/chat", Route::ChatCompletions),
    ("/completions", Route::CompletionNative),
];

/// Path endings of engine routes that take `stream_options`: the OpenAI ones, and vLLM's generate (not SGLang's).
const WITH_STREAM_OPTIONS: [&str; 3] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/inference/v1/generate",
];

/// The route of a request. Only a POST asks an engine to generate; the query and a trailing slash are not part of a
/// known path.
pub(super) fn route(method: &Method, path: &str) -> Route {
    if method != Method::POST {
        return Route::Other;
    }
    let found = SUFFIXES.iter().find(|(suffix, _)| path.ends_with(suffix));
    found.map_or(Route::Other, |&(_, route)| route)
}

/// Whether a request of an observed route may be asked for usage.
pub(super) fn takes_stream_options(route: Route, path: &str) -> bool {
    route.is_observed()
        && WITH_STREAM_OPTIONS
            .iter()
            .any(|suffix| path.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_prefix_and_no_trailing_slash() {
        let post = |path| route(&Method::POST, path);
        assert_eq!(post("/v1/chat/completions"), Route::ChatCompletions);
        assert_eq!(post("/team/a/v1/chat/completions"), Route::ChatCompletions);
        assert_eq!(post("/v1/chat/completions/"), Route::Other);
        assert_eq!(post("/v1/chat/completions/batch"), Route::Other);
        assert_eq!(post("/v1/completions"), Route::Completions);
        assert_eq!(post("/inference/v1/generate"), Route::Generate);
        assert_eq!(post("/generate"), Route::Generate);
        assert_eq!(post("/completion"), Route::CompletionNative);
        assert_eq!(post("/completions"), Route::CompletionNative);
        assert_eq!(post("/chat/completions"), Route::ChatCompletions);
        assert_eq!(post("/api/v0/chat/completions"), Route::ChatCompletions);
        assert_eq!(post("/api/v0/completions"), Route::Completions);
        assert_eq!(post("/v1/messages/count_tokens"), Route::Other);
        assert_eq!(route(&Method::GET, "/v1/chat/completions"), Route::Other);
    }

    #[test]
    fn only_routes_with_the_option_are_asked() {
        assert!(takes_stream_options(
            Route::Generate,
            "/x/inference/v1/generate"
        ));
        assert!(!takes_stream_options(Route::Generate, "/generate"));
        assert!(!takes_stream_options(
            Route::ChatCompletions,
            "/api/v0/chat/completions"
        ));
        assert!(!takes_stream_options(
            Route::CompletionNative,
            "/completions"
        ));
        assert!(!takes_stream_options(Route::Other, "/v1/chat/completions"));
        assert!(!takes_stream_options(Route::Responses, "/v1/responses"));
    }
}
