//! TLS around raw bytes: a front that puts an engine of raw bytes behind TLS, and a client that speaks it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::DEADLINE;
use super::certificates::Pair;

/// What one client of a front said in its handshake, or how the handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) server_name: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) shows_certificate: bool,
}

/// A TLS server that hands clear text on to another port.
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    hellos: Arc<Mutex<Vec<Hello>>>,
}

impl Front {
    /// In front of `engine`, with this certificate; `clients`: the authority whose certificates clients must show.
    /// Where the engine closes, the connection ends without a farewell of TLS.
    pub(crate) fn before(
        engine: SocketAddr,
        pair: &Pair,
        protocols: &[&str],
        clients: Option<&Path>,
    ) -> Self {
        let builder = ServerConfig::builder();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder(Arc::new(roots(authority)))
                    .build()
                    .unwrap(),
            ),
        };
        let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
        let chain = vec![CertificateDer::from_pem_file(&pair.certificate).unwrap()];
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let front = Self {
            address: listener.local_addr().unwrap(),
            hellos: Arc::default(),
        };
        let hellos = Arc::clone(&front.hellos);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(relay(acceptor.clone(), stream, engine, Arc::clone(&hellos)));
                }
            });
        });
        front
    }

    /// The handshakes that came about, in their order.
    pub(crate) fn hellos(&self) -> Vec<Hello> {
        self.hellos.lock().unwrap().clone()
    }
}

async fn relay(
    acceptor: TlsAcceptor,
    stream: tokio::net::TcpStream,
    engine: SocketAddr,
    hellos: Arc<Mutex<Vec<Hello>>>,
) {
    stream.set_nodelay(true).unwrap();
    let Ok(mut client) = acceptor.accept(stream).await else {
        return;
    };
    let session = client.get_ref().1;
    let hello = Hello {
        server_name: session.server_name().map(str::to_owned),
        protocol: session
            .alpn_protocol()
            .map(|name| String::from_utf8(name.to_vec()).unwrap()),
        shows_certificate: session.peer_certificates().is_some(),
    };
    hellos.lock().unwrap().push(hello);
    let mut server = tokio::net::TcpStream::connect(engine).await.unwrap();
    server.set_nodelay(true).unwrap();
    let (mut from_client, mut from_server) = ([0; 16384], [0; 16384]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(count) if count > 0 => server.write_all(&from_client[..count]).await.unwrap(),
                _ => return,
            },
            read = server.read(&mut from_server) => match read {
                Ok(count) if count > 0 => {
                    let _ = client.write_all(&from_server[..count]).await;
                    let _ = client.flush().await;
                }
                _ => return,
            },
        }
    }
}

pub(crate) fn roots(authority: &Path) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority).unwrap())
        .unwrap();
    roots
}

/// How a client of TLS trusts this authority and offers these protocols.
pub(crate) fn trusting(authority: &Path, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots(authority))
        .with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Arc::new(config)
}

/// A client that speaks TLS and sends exactly the bytes it is told.
pub(crate) struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl TlsClient {
    pub(crate) fn connect(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let session = ClientConnection::new(Arc::clone(config), name).unwrap();
        let mut stream = StreamOwned::new(session, socket);
        stream.conn.complete_io(&mut stream.sock).unwrap();
        Self { stream }
    }

    /// What was agreed on.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.stream.conn.alpn_protocol()
    }

    /// The certificate that the server showed.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.stream.conn.peer_certificates().unwrap()[0].clone()
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self.stream.flush().unwrap();
    }

    /// Reads until what was read ends with this.
    pub(crate) fn read_until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buffer = [0; 16384];
        while !all.ends_with(end) {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "closed: {:?}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&buffer[..count]);
        }
        all
    }

    /// Reads everything, and tells whether it ended with a farewell of TLS.
    pub(crate) fn read_to_end(&mut self) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        let mut buffer = [0; 16384];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return (all, true),
                Ok(count) => all.extend_from_slice(&buffer[..count]),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                    ) =>
                {
                    return (all, false);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}
