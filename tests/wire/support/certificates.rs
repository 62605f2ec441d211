//! Certificates made for one test, as PEM files in a folder of their own.

use std::fs;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, date_time_ymd,
};
use tempfile::TempDir;

/// An authority, and the folder for what it signs.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
    /// The authority's own certificate.
    pub(crate) file: PathBuf,
}

/// A certificate and its key, in files.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// When a certificate may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Now,
    /// It ended in 2020.
    Once,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Another name than what it signs, or that looks as if it had signed itself.
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let file = folder.path().join("ca.pem");
        fs::write(&file, certificate.pem()).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            folder,
            file,
        }
    }

    /// A server's certificate for these names.
    pub(crate) fn server(&self, file: &str, names: &[&str], when: When) -> Pair {
        let params = of_server(names, when);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        self.write(file, &certificate, &key)
    }

    /// A client's certificate.
    pub(crate) fn client(&self, file: &str) -> Pair {
        let mut params = CertificateParams::new(vec!["tap.example".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        self.write(file, &certificate, &key)
    }

    /// A certificate that signs itself and calls itself an authority, as `openssl req -x509` makes it.
    pub(crate) fn self_signed(&self, file: &str, names: &[&str], when: When) -> Pair {
        let mut params = of_server(names, when);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        self.write(file, &certificate, &key)
    }

    /// A path in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, file: &str, certificate: &Certificate, key: &KeyPair) -> Pair {
        let pair = Pair {
            certificate: self.path(&format!("{file}.pem")),
            key: self.path(&format!("{file}.key")),
        };
        fs::write(&pair.certificate, certificate.pem()).unwrap();
        fs::write(&pair.key, key.serialize_pem()).unwrap();
        pair
    }
}

fn of_server(names: &[&str], when: When) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    if when == When::Once {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    params
}
