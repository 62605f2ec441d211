//! TLS on the data port. Its certificate is read again when the files change, as they do where certificates live for
//! days or hours.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use super::files::{Pair, TlsFile, TlsFileError};
use super::{H2, HTTP_11, provider};

/// Time between two looks at the files.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// How TLS is spoken with clients. Clones share the certificate.
#[derive(Clone)]
pub struct PortTls {
    config: Arc<ServerConfig>,
    shown: Arc<Shown>,
}

/// The certificate that clients see, and where it is from.
struct Shown {
    certificate: PathBuf,
    key: PathBuf,
    pair: RwLock<Arc<CertifiedKey>>,
}

/// What the files held, and whether it was of use.
struct Look {
    bytes: [Vec<u8>; 2],
    told: bool,
}

impl PortTls {
    /// Reads a certificate with its chain, and its key.
    ///
    /// # Errors
    ///
    /// The file that can't be used.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsFileError> {
        let pair = pair(&certificate, &key);
        let pair = pair.parse(&pair.read()?)?;
        let shown = Arc::new(Shown {
            certificate,
            key,
            pair: RwLock::new(pair),
        });
        #[expect(
            clippy::expect_used,
            reason = "fails only for a provider without a cipher of these versions, and ring has them all"
        )]
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring serves all versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&shown) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![H2.to_vec(), HTTP_11.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            shown,
        })
    }

    pub(in super::super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// Looks at the files again and again, and shows what they hold from then on. Never ends by itself.
    pub async fn follow(self) {
        let mut last: Option<Look> = None;
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            let shown = Arc::clone(&self.shown);
            // A disk, or worse a network, may take its time.
            let look = tokio::task::spawn_blocking(move || shown.look_again(last)).await;
            last = look.ok().flatten();
        }
    }
}

fn pair<'a>(certificate: &'a Path, key: &'a Path) -> Pair<'a> {
    Pair {
        certificate: (TlsFile::PortCertificate, certificate),
        key: (TlsFile::PortKey, key),
    }
}

impl Shown {
    fn look_again(&self, last: Option<Look>) -> Option<Look> {
        let pair = pair(&self.certificate, &self.key);
        let read = pair.read();
        let bytes = match &read {
            Ok(bytes) => bytes.clone(),
            Err(_) => Default::default(),
        };
        let seen_before = last.as_ref().is_some_and(|last| last.bytes == bytes);
        if seen_before && last.as_ref().is_some_and(|last| last.told) {
            return last;
        }
        match read.and_then(|bytes| pair.parse(&bytes)) {
            Ok(new) => {
                let mut shown = self.pair.write().unwrap_or_else(PoisonError::into_inner);
                if shown.cert != new.cert {
                    let path = self.certificate.display();
                    tracing::info!("the data port shows the new certificate of {path}");
                }
                *shown = new;
                Some(Look { bytes, told: true })
            }
            // Whoever renews writes one file after the other: trouble is only what lasts.
            Err(_) if !seen_before => Some(Look { bytes, told: false }),
            Err(error) => {
                tracing::warn!(
                    "the data port keeps the certificate that it has; --tls-cert and --tls-key changed and can not be used: {error}"
                );
                Some(Look { bytes, told: true })
            }
        }
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let pair = self.pair.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&pair))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No key in a log.
        formatter.write_str("Shown")
    }
}

impl fmt::Debug for PortTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PortTls")
            .field("certificate", &self.shown.certificate)
            .field("key", &self.shown.key)
            .finish()
    }
}

#[cfg(test)]
mod tests;
