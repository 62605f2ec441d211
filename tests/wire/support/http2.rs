//! A client that speaks HTTP/2, frame by frame.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use http::Request;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

use super::DEADLINE;

/// A connection, and the runtime that drives it.
pub(crate) struct Http2 {
    pub(crate) runtime: Runtime,
    pub(crate) sender: SendRequest<Bytes>,
    pub(crate) closed: mpsc::Receiver<()>,
}

impl Http2 {
    /// In clear text, with prior knowledge.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(async move { TcpStream::connect(address).await.unwrap() })
    }

    /// In TLS.
    pub(crate) fn connect_in_tls(
        address: SocketAddr,
        config: Arc<ClientConfig>,
        name: &'static str,
    ) -> Self {
        Self::over(async move {
            let socket = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from(name).unwrap();
            TlsConnector::from(config)
                .connect(name, socket)
                .await
                .unwrap()
        })
    }

    fn over<S>(socket: impl Future<Output = S> + Send + 'static) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (tell, closed) = mpsc::channel();
        let sender = runtime.block_on(async move {
            let (sender, connection) = h2::client::handshake(socket.await).await.unwrap();
            tokio::spawn(async move {
                let _ = connection.await;
                let _ = tell.send(());
            });
            sender.ready().await.unwrap()
        });
        Self {
            runtime,
            sender,
            closed,
        }
    }

    pub(crate) fn send(&mut self, request: Request<()>, body: &'static str) -> ResponseFuture {
        let (response, mut stream) = self.sender.send_request(request, body.is_empty()).unwrap();
        if !body.is_empty() {
            stream
                .send_data(Bytes::from_static(body.as_bytes()), true)
                .unwrap();
        }
        response
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime
            .block_on(async { tokio::time::timeout(DEADLINE, future).await })
            .expect("in time")
    }

    pub(crate) fn head(&self, response: ResponseFuture) -> http::Response<RecvStream> {
        self.wait(response).unwrap()
    }

    /// The next data, or how the stream was reset; nothing at its proper end.
    pub(crate) fn data(&self, body: &mut RecvStream) -> Option<Result<Bytes, Option<Reason>>> {
        let data = self.wait(body.data())?;
        Some(match data {
            Ok(data) => {
                body.flow_control().release_capacity(data.len()).unwrap();
                Ok(data)
            }
            Err(error) => Err(error.reason()),
        })
    }

    /// Data up to the end of one event.
    pub(crate) fn event(&self, body: &mut RecvStream) -> Vec<u8> {
        let mut event = Vec::new();
        while !event.ends_with(b"\n\n") {
            event.extend(self.data(body).expect("an event").expect("no reset"));
        }
        event
    }

    /// All data, and how the stream was reset if it was.
    pub(crate) fn rest(&self, body: &mut RecvStream) -> (Vec<u8>, Option<Option<Reason>>) {
        let mut all = Vec::new();
        loop {
            match self.data(body) {
                None => return (all, None),
                Some(Ok(data)) => all.extend_from_slice(&data),
                Some(Err(reason)) => return (all, Some(reason)),
            }
        }
    }
}
