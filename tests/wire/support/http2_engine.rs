//! An engine that speaks HTTP/2, frame by frame.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Handshake, SendResponse};
use http::{HeaderMap, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::until;

type Served = Pin<Box<dyn Future<Output = ()> + Send>>;
type Handler = dyn Fn(Request<RecvStream>, SendResponse<Bytes>) -> Served + Send + Sync;

pub(crate) struct Http2Engine {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Request<()>>>>,
    opened: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    /// Each connection hears of what is told after it was opened.
    farewell: watch::Sender<()>,
    broken: watch::Sender<()>,
}

impl Http2Engine {
    /// An engine that does this with each request.
    pub(crate) fn start<F>(
        handler: impl Fn(Request<RecvStream>, SendResponse<Bytes>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::allowing(None, handler)
    }

    /// One that allows this many streams on a connection.
    pub(crate) fn allowing<F>(
        streams: Option<u32>,
        handler: impl Fn(Request<RecvStream>, SendResponse<Bytes>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut server = h2::server::Builder::new();
        if let Some(streams) = streams {
            server.max_concurrent_streams(streams);
        }
        let handler: Arc<Handler> =
            Arc::new(move |request, respond| Box::pin(handler(request, respond)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let engine = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            opened: Arc::default(),
            open: Arc::default(),
            farewell: watch::Sender::default(),
            broken: watch::Sender::default(),
        };
        let (seen, opened, open) = (
            Arc::clone(&engine.seen),
            Arc::clone(&engine.opened),
            Arc::clone(&engine.open),
        );
        let (farewell, broken) = (engine.farewell.clone(), engine.broken.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((socket, _)) = listener.accept().await {
                    socket.set_nodelay(true).unwrap();
                    opened.fetch_add(1, Ordering::SeqCst);
                    open.fetch_add(1, Ordering::SeqCst);
                    let (handler, seen, open) =
                        (Arc::clone(&handler), Arc::clone(&seen), Arc::clone(&open));
                    let (farewell, mut broken) = (farewell.subscribe(), broken.subscribe());
                    let handshake = server.handshake(socket);
                    tokio::spawn(async move {
                        tokio::select! {
                            () = connection(handshake, &*handler, &seen, farewell) => {}
                            _ = broken.changed() => {}
                        }
                        open.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            });
        });
        engine
    }

    /// The request of this number, once it is there.
    pub(crate) fn request(&self, number: usize) -> Request<()> {
        until("a request at the engine", || {
            self.seen.lock().unwrap().get(number).cloned()
        })
    }

    /// Connections that were ever opened.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// Waits until this many connections are open.
    pub(crate) fn until_open(&self, count: usize) {
        until("connections", || {
            (self.open.load(Ordering::SeqCst) == count).then_some(())
        });
    }

    /// Says GOAWAY on the connections that are open; what runs on them may finish.
    pub(crate) fn say_farewell(&self) {
        self.farewell.send_replace(());
    }

    /// Breaks off the connections that are open, without a word.
    pub(crate) fn break_off(&self) {
        self.broken.send_replace(());
    }
}

async fn connection(
    handshake: Handshake<TcpStream, Bytes>,
    handler: &Handler,
    seen: &Mutex<Vec<Request<()>>>,
    mut farewell: watch::Receiver<()>,
) {
    let Ok(mut connection) = handshake.await else {
        return;
    };
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            Ok(()) = farewell.changed() => {
                connection.graceful_shutdown();
                continue;
            }
        };
        let Some(Ok((request, respond))) = accepted else {
            return;
        };
        let mut copy = Request::new(());
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        seen.lock().unwrap().push(copy);
        tokio::spawn(handler(request, respond));
    }
}

/// Reads a body to its end, and its trailers.
pub(crate) async fn read_all(body: &mut RecvStream) -> (Vec<u8>, Option<HeaderMap>) {
    let mut all = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        all.extend_from_slice(&data);
    }
    (all, body.trailers().await.unwrap())
}

/// The head of an answer.
pub(crate) fn head(fields: &[(&'static str, &str)]) -> Response<()> {
    let mut response = Response::new(());
    for (name, value) in fields {
        response.headers_mut().append(*name, value.parse().unwrap());
    }
    response
}
