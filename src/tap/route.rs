//! Which requests are looked at, by method and path alone.

use http::Method;

use crate::observation::Route;

/// Path endings and their routes, longest first where one ends in another. Any prefix may stand before them, as
/// gateways mount engines below a path of their own.
const SUFFIXES: [(&str, Route); 7] = [
    ("/v1/chat/completions", Route::ChatCompletions),
    ("/v1/completions", Route::Completions),
    ("/v1/responses", Route::Responses),
    ("/v1/messages", Route::Messages),
    ("/inference/v1/generate", Route::Generate),
    ("/generate", Route::Generate),
    ("/completion", Route::CompletionNative),
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

/// Whether the engine's route takes `stream_options`: the OpenAI routes, and vLLM's generate (not SGLang's).
pub(super) fn takes_stream_options(route: Route, path: &str) -> bool {
    match route {
        Route::ChatCompletions | Route::Completions => true,
        Route::Generate => path.ends_with("/inference/v1/generate"),
        _ => false,
    }
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
        assert!(!takes_stream_options(Route::Responses, "/v1/responses"));
    }
}
