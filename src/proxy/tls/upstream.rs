//! TLS with the server behind the tap.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::files::{Pair, TlsFile, TlsFileError, TlsFileProblem};
use super::verifier::Verifier;
use super::{H2, HTTP_11, provider};

/// What decides whom to trust and who we are.
#[derive(Clone, Debug, Default)]
pub struct UpstreamTlsFiles {
    /// Authorities that vouch for the server, instead of those of the system.
    pub ca: Option<PathBuf>,
    /// Our own certificate with its chain, and its key, for a server that asks for them.
    pub client: Option<(PathBuf, PathBuf)>,
    /// What the server's certificate must name, instead of the host of its address.
    pub server_name: Option<ServerName<'static>>,
}

/// How TLS is spoken with servers. Clones share it.
#[derive(Clone)]
pub struct UpstreamTls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl UpstreamTls {
    /// Reads the files. Without a file of authorities those of the system count, and where it has none, as in an image
    /// made from nothing, those that Mozilla trusts. `http2`: what is agreed on, and nothing else.
    ///
    /// # Errors
    ///
    /// The first file that can't be used.
    pub fn load(files: &UpstreamTlsFiles, http2: bool) -> Result<Self, TlsFileError> {
        #[expect(
            clippy::expect_used,
            reason = "fails only for a provider without a cipher of these versions, and ring has them all"
        )]
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring serves all versions");
        let builder = match &files.ca {
            None => builder.with_root_certificates(roots_of_the_system()),
            Some(path) => {
                let given =
                    TlsFile::UpstreamCa.certificates(path, &TlsFile::UpstreamCa.read(path)?)?;
                let wrong =
                    |error| TlsFile::UpstreamCa.error(path, TlsFileProblem::Certificate(error));
                let mut roots = RootCertStore::empty();
                for certificate in &given {
                    roots.add(certificate.clone()).map_err(wrong)?;
                }
                let webpki =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                        .build()
                        .map_err(|error| wrong(rustls::Error::General(error.to_string())))?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(Verifier::new(webpki, given)))
            }
        };
        let mut config = match &files.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let pair = Pair {
                    certificate: (TlsFile::UpstreamCertificate, certificate),
                    key: (TlsFile::UpstreamKey, key),
                };
                let shown: Arc<dyn ResolvesClientCert> =
                    Arc::new(SingleCertAndKey::from(pair.parse(&pair.read()?)?));
                builder.with_client_cert_resolver(shown)
            }
        };
        config.alpn_protocols = vec![if http2 { H2 } else { HTTP_11 }.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            server_name: files.server_name.clone(),
        })
    }

    /// What the server's certificate must name, where the user said it.
    pub(in super::super) fn server_name(&self) -> Option<&ServerName<'static>> {
        self.server_name.as_ref()
    }

    pub(in super::super) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.config))
    }
}

impl fmt::Debug for UpstreamTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // rustls would print its whole store of authorities.
        formatter
            .debug_struct("UpstreamTls")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

fn roots_of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "the system's certificates");
    }
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}
