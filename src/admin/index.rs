//! The list of what the admin port has, which `/` gives to everybody but a browser.

/// A plain text, for a person who opens the port without knowing it.
pub(super) const TEXT: &str = "\
spectap, admin port

GET  /                       this list; in a browser the page
GET  /metrics                Prometheus series (classic text, or OpenMetrics when asked for)
GET  /livez                  the process runs
GET  /readyz                 the engine accepts connections and spectap is not stopping
GET  /api/v1/summary         the numbers, for people and tools
GET  /api/v1/snapshot        the numbers, for machines: counts, histograms, distributions
GET  /api/v1/history         a window stretch by stretch, and the window before it
GET  /api/v1/compare         two parts side by side: ?base=run%3Da&other=run%3Db
GET  /api/v1/stream          all of it live, as server-sent events
GET  /api/v1/requests        recent exchanges, newest first
GET  /api/v1/requests/{id}   one of them
GET  /api/v1/export          what is kept of them, as a file: ?format=jsonl, json or csv
GET  /api/v1/inject          whether requests are altered to make the engine report
POST /api/v1/inject          {\"enabled\":true} or {\"enabled\":false}
GET  /api/v1/runs            the runs, newest first
POST /api/v1/runs            {\"name\":\"…\"} begins a run; without a name it gets the time as its name
";
