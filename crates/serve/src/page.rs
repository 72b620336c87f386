//! The page: one HTML document with its script and style inside, built by `cargo xtask web` from `page/` and embedded
//! compressed. The policy names the hashes of both, so that nothing else can run.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use miniz_oxide::inflate::decompress_to_vec;

/// The document, compressed with gzip.
const DOCUMENT: &[u8] = include_bytes!("../page/dist/index.html.gz");

/// The policy of the document; the build writes the hashes into it.
const POLICY: &str = include_str!("../page/dist/policy.txt");

/// Size of a gzip header without optional fields, and of its trailer.
const GZIP_HEADER: usize = 10;
const GZIP_TRAILER: usize = 8;

/// Answers with the page.
pub(crate) fn document(headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", blake3::hash(DOCUMENT).to_hex().get(..16).unwrap_or_default());
    let mut response = if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        // A browser takes over the headers of this answer, so it needs the same policy.
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        body(headers)
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    if let Ok(policy) = HeaderValue::from_str(POLICY.trim()) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn body(headers: &HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut response = if accepted.contains("gzip") {
        let mut response = Response::new(Body::from(DOCUMENT));
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        let packed = DOCUMENT.get(GZIP_HEADER..DOCUMENT.len() - GZIP_TRAILER).unwrap_or_default();
        Response::new(Body::from(decompress_to_vec(packed).unwrap_or_default()))
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// Adds the headers of every answer. What is not the page may not do anything in a browser.
pub(crate) fn harden(response: &mut Response) {
    const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let fixed: [(HeaderName, &'static str); 5] = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
