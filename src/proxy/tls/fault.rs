//! Why TLS with the server failed, in words that say what to do about it. The kinds are few, since they label a metric.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use super::verifier::is_authority;

/// What stands between us and the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum TlsFault {
    #[error("its certificate is of no known authority; give that one with --upstream-ca")]
    Untrusted,
    #[error("its certificate has expired; renew it, or mend the clock")]
    Expired,
    #[error("its certificate is not valid yet; wait, or mend the clock")]
    NotYet,
    #[error(
        "its certificate is for another name ({0}); if that is right, say so with --upstream-server-name"
    )]
    Name(String),
    #[error(
        "it refused us ({0}); it may want a client certificate: --upstream-client-cert and --upstream-client-key"
    )]
    Client(String),
    #[error("it does not speak TLS; if that is right, write http:// in its address")]
    NotTls,
    #[error("{0}")]
    Other(String),
}

impl TlsFault {
    /// The closed list of kinds.
    pub(in super::super) fn kind(&self) -> &'static str {
        match self {
            TlsFault::Untrusted => "tls-untrusted",
            TlsFault::Expired | TlsFault::NotYet => "tls-expired",
            TlsFault::Name(_) => "tls-name",
            TlsFault::Client(_) => "tls-client-cert",
            TlsFault::NotTls | TlsFault::Other(_) => "tls-failed",
        }
    }

    /// Of a handshake that failed.
    pub(in super::super) fn of_handshake(error: &io::Error) -> Self {
        Self::of(error).unwrap_or_else(|| TlsFault::Other(error.to_string()))
    }

    /// Of anything that failed, if TLS is what failed. A server that speaks TLS 1.3 refuses our certificate only after
    /// the handshake, in place of an answer.
    pub(in super::super) fn of(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<Error>() {
                return Some(Self::of_rustls(error));
            }
            // An io::Error tells of what it wraps only when asked like this.
            cause = match error.downcast_ref::<io::Error>() {
                Some(error) => error
                    .get_ref()
                    .map(|inner| inner as &(dyn StdError + 'static)),
                None => error.source(),
            };
        }
        None
    }

    fn of_rustls(error: &Error) -> Self {
        use AlertDescription as Alert;
        use CertificateError as Wrong;
        match error {
            // It signed itself, and is not the one that was given.
            error if is_authority(error) => TlsFault::Untrusted,
            Error::InvalidCertificate(wrong) => match wrong {
                // An authority that was made anew under its old name has another key.
                Wrong::UnknownIssuer | Wrong::BadSignature => TlsFault::Untrusted,
                Wrong::Expired | Wrong::ExpiredContext { .. } => TlsFault::Expired,
                Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => TlsFault::NotYet,
                Wrong::NotValidForName => TlsFault::Name("none that it tells".to_owned()),
                Wrong::NotValidForNameContext { presented, .. } => {
                    TlsFault::Name(presented.join(", "))
                }
                other => TlsFault::Other(format!("its certificate can not be used: {other}")),
            },
            Error::AlertReceived(
                alert @ (Alert::CertificateRequired
                | Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA
                | Alert::AccessDenied),
            ) => TlsFault::Client(format!("{alert:?}")),
            Error::AlertReceived(Alert::NoApplicationProtocol) | Error::NoApplicationProtocol => {
                TlsFault::Other("it serves neither of the protocols that were offered".to_owned())
            }
            Error::InvalidMessage(_) => TlsFault::NotTls,
            other => TlsFault::Other(other.to_string()),
        }
    }
}
