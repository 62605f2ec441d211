//! A TCP proxy that does one thing wrong, at one point of one connection.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::support::until;

/// How long a delay lasts.
const DELAY: Duration = Duration::from_millis(30);

/// How many bytes drip, and how long each takes.
const DRIPS: usize = 40;
const DRIP: Duration = Duration::from_millis(1);

/// The longest that the other side of a cut may take to close.
const CLOSING: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From client to server.
    Up,
    /// From server to client.
    Down,
}

/// Where in the bytes of one way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum After {
    /// Behind the first of this text.
    Text(&'static [u8]),
    /// Behind so many bytes.
    Bytes(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing goes on for a moment.
    Delay,
    /// Nothing goes on until [`FaultProxy::release`].
    Stall,
    /// Both sides see an end (FIN).
    Cut,
    /// Both sides see a reset (RST).
    Reset,
    /// Some bytes go on one by one.
    Drip,
}

impl Kind {
    /// Whether the connection is over after it.
    pub(crate) fn breaks(self) -> bool {
        matches!(self, Kind::Cut | Kind::Reset)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) way: Way,
    pub(crate) after: After,
    pub(crate) kind: Kind,
    /// At its place it waits for [`FaultProxy::release`] before it begins.
    pub(crate) waits: bool,
}

/// What the fault of a connection is, by its number.
type Plan = dyn Fn(usize) -> Option<Fault> + Send + Sync;

pub(crate) struct FaultProxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    reached: AtomicUsize,
    released: watch::Sender<bool>,
}

/// Why a connection ends before its time.
enum Broken {
    Cut,
    Reset,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    })
}

impl FaultProxy {
    /// A proxy to `server` whose connections have the faults that `plan` says.
    pub(crate) fn start(
        server: SocketAddr,
        plan: impl Fn(usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        let plan: Arc<Plan> = Arc::new(plan);
        let listener = runtime()
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            reached: AtomicUsize::new(0),
            released: watch::Sender::new(false),
        });
        let known = Arc::clone(&shared);
        let task = runtime().spawn(async move {
            for number in 0.. {
                let Ok((client, _)) = listener.accept().await else {
                    return;
                };
                let (known, fault) = (Arc::clone(&known), plan(number));
                tokio::spawn(async move {
                    // Without a server the client sees the connection close.
                    if let Ok(server) = TcpStream::connect(server).await {
                        join(client, server, fault, &known).await;
                    }
                });
            }
        });
        Self {
            address,
            shared,
            task: task.abort_handle(),
        }
    }

    /// A proxy whose first connection has this fault, and no other has any.
    pub(crate) fn once(server: SocketAddr, fault: Option<Fault>) -> Self {
        Self::start(server, move |number| fault.filter(|_| number == 0))
    }

    /// Waits until a fault has been come to.
    pub(crate) fn wait_reached(&self) {
        until("the place of the fault", || {
            (self.reached() > 0).then_some(())
        });
    }

    /// How many faults were come to.
    pub(crate) fn reached(&self) -> usize {
        self.shared.reached.load(Ordering::SeqCst)
    }

    /// Ends every stall.
    pub(crate) fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.release();
        self.task.abort();
    }
}

/// Passes bytes both ways until both have ended, or the fault ends them.
async fn join(mut client: TcpStream, mut server: TcpStream, fault: Option<Fault>, known: &Shared) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let of = |way| fault.filter(|fault| fault.way == way);
    let broken = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let up = pump(&mut from_client, &mut to_server, of(Way::Up), known);
        let down = pump(&mut from_server, &mut to_client, of(Way::Down), known);
        tokio::try_join!(up, down).err()
    };
    match broken {
        None => {}
        Some(Broken::Cut) => {
            // A socket that closes with bytes unread would say RST.
            let _ = (client.shutdown().await, server.shutdown().await);
            let ends = async { (drain(&mut client).await, drain(&mut server).await) };
            let _ = tokio::time::timeout(CLOSING, ends).await;
        }
        Some(Broken::Reset) => {
            for socket in [&client, &server] {
                let _ = socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO));
            }
        }
    }
}

async fn drain(socket: &mut TcpStream) {
    let mut buffer = [0; 4096];
    while socket.read(&mut buffer).await.unwrap_or(0) > 0 {}
}

async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    fault: Option<Fault>,
    known: &Shared,
) -> Result<(), Broken> {
    let mut buffer = [0; 16 << 10];
    let mut passed = Vec::new();
    let mut coming = fault;
    if let Some(fault) = coming.take_if(|fault| place(fault.after, &[]) == Some(0)) {
        commit(fault, from, to, known).await?;
    }
    loop {
        // An end without a word is one, too: a reset passes as an end.
        let count = from.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            let _ = to.shutdown().await;
            return Ok(());
        }
        let bytes = &buffer[..count];
        let Some(fault) = coming else {
            if to.write_all(bytes).await.is_err() {
                return Ok(());
            }
            continue;
        };
        let before = passed.len();
        passed.extend_from_slice(bytes);
        let at = place(fault.after, &passed);
        let (first, rest) = bytes.split_at(at.map_or(count, |at| at - before));
        if to.write_all(first).await.is_err() {
            return Ok(());
        }
        if at.is_some() {
            coming = None;
            let mut rest = rest.chain(&mut *from);
            commit(fault, &mut rest, to, known).await?;
            let left = rest.into_inner().0;
            if to.write_all(left).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Where the fault stands in the bytes so far, if it does.
fn place(after: After, bytes: &[u8]) -> Option<usize> {
    match after {
        After::Text(text) => memchr::memmem::find(bytes, text).map(|at| at + text.len()),
        After::Bytes(count) => (bytes.len() >= count).then_some(count),
    }
}

async fn commit(
    fault: Fault,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    known: &Shared,
) -> Result<(), Broken> {
    if fault.waits {
        // The proxy itself is gone, or says go on.
        let _ = known.released.subscribe().wait_for(|go| *go).await;
    }
    known.reached.fetch_add(1, Ordering::SeqCst);
    match fault.kind {
        Kind::Cut => Err(Broken::Cut),
        Kind::Reset => Err(Broken::Reset),
        Kind::Delay => {
            tokio::time::sleep(DELAY).await;
            Ok(())
        }
        Kind::Stall => {
            let _ = known.released.subscribe().wait_for(|go| *go).await;
            Ok(())
        }
        Kind::Drip => {
            for _ in 0..DRIPS {
                let Ok(byte) = from.read_u8().await else {
                    break;
                };
                if to.write_u8(byte).await.is_err() {
                    break;
                }
                tokio::time::sleep(DRIP).await;
            }
            Ok(())
        }
    }
}
