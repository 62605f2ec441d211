//! The server behind one lane, with all that is needed to reach it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;

use super::address::{UpstreamAddress, UpstreamAddressError};
use super::dial::dial;
use super::refusal::Refusal;
use super::resolver::Resolver;
use super::tls::UpstreamTls;

/// Time between two lines in the log about a server that can't be spoken to.
const PERIOD: Duration = Duration::from_secs(60);

/// How servers are reached, whichever they are.
#[derive(Clone, Debug)]
pub struct Transport {
    /// How TLS is spoken with those at `https://`. There is no way around it: without, they can't be reached.
    pub tls: Option<UpstreamTls>,
    /// Whether they are spoken to in HTTP/2, with prior knowledge or as TLS agrees on it.
    pub http2: bool,
    /// How their names become addresses.
    pub resolver: Resolver,
    /// How long a connection may take to open, whatever the number of addresses, and how long TLS may take on it.
    pub connect_limit: Duration,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            tls: None,
            http2: false,
            resolver: Resolver::default(),
            connect_limit: Duration::from_secs(5),
        }
    }
}

/// One server. Clones are the same server.
#[derive(Clone, Debug)]
pub struct Upstream {
    address: UpstreamAddress,
    secure: Option<(UpstreamTls, ServerName<'static>)>,
    http2: bool,
    resolver: Resolver,
    connect_limit: Duration,
    last_told: Arc<Mutex<Option<Instant>>>,
}

impl Upstream {
    /// The server at `address`.
    ///
    /// # Errors
    ///
    /// When the address asks for TLS and there are no settings of it, or no certificate can name its host.
    pub fn new(
        address: UpstreamAddress,
        transport: &Transport,
    ) -> Result<Self, UpstreamAddressError> {
        let secure = if address.is_tls() {
            let tls = transport.tls.clone().ok_or(UpstreamAddressError::NoTls)?;
            let name = match (tls.server_name(), address.host_and_port()) {
                (Some(name), _) => name.clone(),
                (None, Some((host, _))) => ServerName::try_from(host.to_owned())
                    .map_err(|_| UpstreamAddressError::ServerName(host.to_owned()))?,
                (None, None) => return Err(UpstreamAddressError::NoTls),
            };
            Some((tls, name))
        } else {
            None
        };
        Ok(Self {
            address,
            secure,
            http2: transport.http2,
            resolver: transport.resolver.clone(),
            connect_limit: transport.connect_limit,
            last_told: Arc::default(),
        })
    }

    /// Where it is.
    pub fn address(&self) -> &UpstreamAddress {
        &self.address
    }

    /// How TLS is spoken with it, and what its certificate must name.
    pub(super) fn secure(&self) -> Option<&(UpstreamTls, ServerName<'static>)> {
        self.secure.as_ref()
    }

    /// Whether it is spoken to in HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.http2
    }

    /// How its name becomes addresses.
    pub(super) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// How long a connection may take to open, and TLS on it.
    pub(super) fn connect_limit(&self) -> Duration {
        self.connect_limit
    }

    /// Opens a connection and closes it again without a request.
    ///
    /// # Errors
    ///
    /// Why none can be opened, in one line.
    pub async fn reach(&self) -> Result<(), String> {
        match dial(self).await {
            Ok(_) => Ok(()),
            Err(refusal) => {
                self.complain(&refusal);
                Err(refusal.to_string())
            }
        }
    }

    /// Says in the log why the server can't be spoken to, at once and then once a minute, where nothing will mend it but
    /// a person.
    pub(super) fn complain(&self, refusal: &Refusal) {
        if !matches!(refusal, Refusal::Tls(..) | Refusal::NotHttp2(..)) {
            return;
        }
        let mut last = self
            .last_told
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|at| at.elapsed() >= PERIOD) {
            *last = Some(Instant::now());
            tracing::warn!(kind = refusal.kind(), "{refusal}");
        }
    }
}
