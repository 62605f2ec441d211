//! Certificates and keys in PEM files, and what can be wrong with them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::provider;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// Authorities that vouch for the server.
    UpstreamCa,
    /// Our certificate, as the server sees it.
    UpstreamCertificate,
    /// Its key.
    UpstreamKey,
    /// The data port's certificate.
    PortCertificate,
    /// Its key.
    PortKey,
}

/// A file that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct TlsFileError {
    /// What it is for.
    pub file: TlsFile,
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong with it, and what would be right.
    pub problem: TlsFileProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileProblem {
    /// It can't be read.
    #[error("can not be read ({0}); it must be a readable PEM file")]
    Unreadable(io::Error),
    /// It is no PEM, or a damaged one.
    #[error(
        "is damaged ({0}); it must be a PEM file, with base64 between BEGIN and END lines as openssl writes it"
    )]
    NotPem(String),
    /// It has no certificate.
    #[error(
        "holds no certificate; it must be a PEM file with one or more BEGIN CERTIFICATE blocks"
    )]
    NoCertificate,
    /// It has no key that can be used.
    #[error(
        "holds no private key; it must be a PEM file with one BEGIN PRIVATE KEY block, not encrypted"
    )]
    NoKey,
    /// A certificate in it can't be used.
    #[error("holds a certificate that can not be used ({0}); it must be an X.509 certificate")]
    Certificate(rustls::Error),
    /// The key in it can't be used.
    #[error("holds a key that can not be used ({0}); it must be an RSA, ECDSA or Ed25519 key")]
    Key(rustls::Error),
    /// Certificate and key are of different pairs.
    #[error("does not belong to the certificate in {}; give the key of that one", .0.display())]
    Mismatch(PathBuf),
}

impl TlsFile {
    pub(super) fn error(self, path: &Path, problem: TlsFileProblem) -> TlsFileError {
        TlsFileError {
            file: self,
            path: path.to_owned(),
            problem,
        }
    }

    /// The bytes of the file.
    pub(super) fn read(self, path: &Path) -> Result<Vec<u8>, TlsFileError> {
        fs::read(path).map_err(|error| self.error(path, TlsFileProblem::Unreadable(error)))
    }

    /// The certificates of a file.
    pub(super) fn certificates(
        self,
        path: &Path,
        bytes: &[u8],
    ) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
        let certificates = CertificateDer::pem_slice_iter(bytes)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.error(path, TlsFileProblem::NotPem(error.to_string())))?;
        if certificates.is_empty() {
            return Err(self.error(path, TlsFileProblem::NoCertificate));
        }
        Ok(certificates)
    }

    fn key(self, path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsFileError> {
        PrivateKeyDer::from_pem_slice(bytes).map_err(|error| {
            let problem = match error {
                pem::Error::NoItemsFound => TlsFileProblem::NoKey,
                other => TlsFileProblem::NotPem(other.to_string()),
            };
            self.error(path, problem)
        })
    }
}

/// A certificate with its chain, and its key, as two files hold them.
pub(super) struct Pair<'a> {
    pub(super) certificate: (TlsFile, &'a Path),
    pub(super) key: (TlsFile, &'a Path),
}

impl Pair<'_> {
    /// Reads both.
    pub(super) fn read(&self) -> Result<[Vec<u8>; 2], TlsFileError> {
        let ((certificate, certificate_path), (key, key_path)) = (self.certificate, self.key);
        Ok([certificate.read(certificate_path)?, key.read(key_path)?])
    }

    /// Makes of their bytes what TLS shows.
    pub(super) fn parse(&self, bytes: &[Vec<u8>; 2]) -> Result<Arc<CertifiedKey>, TlsFileError> {
        let ((certificate, certificate_path), (key, key_path)) = (self.certificate, self.key);
        let chain = certificate.certificates(certificate_path, &bytes[0])?;
        let secret = key.key(key_path, &bytes[1])?;
        let signer = provider()
            .key_provider
            .load_private_key(secret)
            .map_err(|error| key.error(key_path, TlsFileProblem::Key(error)))?;
        let pair = CertifiedKey::new(chain, signer);
        match pair.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
                Ok(Arc::new(pair))
            }
            Err(rustls::Error::InconsistentKeys(_)) => {
                let problem = TlsFileProblem::Mismatch(certificate_path.to_owned());
                Err(key.error(key_path, problem))
            }
            Err(error) => {
                Err(certificate.error(certificate_path, TlsFileProblem::Certificate(error)))
            }
        }
    }
}
