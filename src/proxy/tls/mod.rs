//! TLS on either side, by rustls with ring: with the server behind the tap, and on the data port. Nothing here falls
//! back to clear text.

mod fault;
mod files;
mod port;
mod upstream;
mod verifier;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub(super) use fault::TlsFault;
pub use files::{TlsFile, TlsFileError, TlsFileProblem};
pub use port::PortTls;
pub use upstream::{UpstreamTls, UpstreamTlsFiles};

/// HTTP/2 in the agreement on a protocol (RFC 7301).
const H2: &[u8] = b"h2";

/// HTTP/1.1 in it.
const HTTP_11: &[u8] = b"http/1.1";

/// Who does the arithmetic.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
