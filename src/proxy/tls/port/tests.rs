//! The data port's certificate while its files change.

use std::fs;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;

use super::PortTls;

fn write_pair(folder: &Path, name: &str) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![format!("{name}.example")]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    fs::write(folder.join("cert"), certificate.pem()).unwrap();
    fs::write(folder.join("key"), key.serialize_pem()).unwrap();
    certificate.der().clone()
}

fn shown(port: &PortTls) -> CertificateDer<'static> {
    port.shown.pair.read().unwrap().cert[0].clone()
}

#[test]
fn a_pair_that_broke_is_told_once_it_lasts_and_the_old_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert"), folder.path().join("key"));
    let first = write_pair(folder.path(), "first");
    let port = PortTls::load(certificate.clone(), key.clone()).unwrap();
    let look = port.shown.look_again(None);
    assert_eq!(shown(&port), first);

    // Half of a renewal: the key is still the old one.
    let old_key = fs::read(&key).unwrap();
    let second = write_pair(folder.path(), "second");
    let new_key = fs::read(&key).unwrap();
    fs::write(&key, &old_key).unwrap();
    let look = port.shown.look_again(look);
    assert_eq!(look.as_ref().map(|look| look.told), Some(false));
    let look = port.shown.look_again(look);
    assert_eq!(look.as_ref().map(|look| look.told), Some(true));
    assert_eq!(shown(&port), first);
    // Its other half.
    fs::write(&key, &new_key).unwrap();
    let look = port.shown.look_again(look);
    assert_eq!(shown(&port), second);

    for broken in ["", "-----BEGIN CERTIFICATE-----\n!\n"] {
        fs::write(&certificate, broken).unwrap();
        port.shown.look_again(port.shown.look_again(None));
        assert_eq!(shown(&port), second);
    }
    fs::remove_file(&certificate).unwrap();
    port.shown.look_again(look);
    assert_eq!(shown(&port), second);
}
