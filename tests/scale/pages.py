"""Many exposition pages from one process: a real page of a tap whose counters grow, served at as many addresses as asked."""

import http.server
import re
import threading
import time

SAMPLE = re.compile(r"^([a-zA-Z_:][^ ]*(?:\{.*\})?) ([0-9.e+-]+)(.*)$")


class Pages:
    """The page grows by a hundredth of its first values each second, as a tap's does under steady traffic."""

    def __init__(self, page):
        self.lines = []
        for line in page.splitlines():
            found = SAMPLE.match(line)
            is_counter = found and ("_total" in found[1] or "_bucket" in found[1] or "_count" in found[1] or "_sum" in found[1])
            self.lines.append((found[1], float(found[2])) if is_counter else line)
        self.begun, self.of_second, self.text = time.time(), None, b""
        self.lock = threading.Lock()

    def now(self):
        second = int(time.time() - self.begun)
        with self.lock:
            if second != self.of_second:
                # Exemplars are left out: they are at most one a bucket and are kept apart.
                lines = [line if isinstance(line, str) else f"{line[0]} {line[1] + int(line[1] / 100) * second:.17g}" for line in self.lines]
                self.text, self.of_second = "\n".join(lines).encode() + b"\n", second
            return self.text

    def __enter__(self):
        pages = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                text = pages.now()
                self.send_response(200)
                self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A scraper that is late hangs up.
        self.server.handle_error = lambda *_: None
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
