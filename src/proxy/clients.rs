//! The open connections of one listener: a drain waits for them, and a cut ends them.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections that are open. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Clients {
    open: TaskTracker,
    cut: CancellationToken,
}

impl Clients {
    /// Serves one more, until it has ended or the cut comes.
    pub(super) fn spawn(&self, client: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        self.open.spawn(async move {
            tokio::select! {
                biased;
                () = client => {}
                () = cut.cancelled() => {}
            }
        });
    }

    /// Waits until all have ended by themselves.
    pub(super) async fn ended(&self) {
        self.open.close();
        self.open.wait().await;
    }

    /// Ends those that are left.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }
}
