"""Passes HTTP requests on to `fusee serve` with the token, for clients that cannot send a header.

Arguments: host:port of the server, and the token. Prints its own port. A Host that is not the proxy's own is passed on, so
that a client can test that it is refused.
"""

import http.client
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

target, token = sys.argv[1:]


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def forward(self):
        port = self.server.server_port
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() != "connection"}
        for name in headers.keys() & {"host", "origin"}:
            for own in (f"127.0.0.1:{port}", f"localhost:{port}"):
                headers[name] = headers[name].replace(own, target)
        headers["authorization"] = "Bearer " + token
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        connection = http.client.HTTPConnection(target)
        connection.request(self.command, self.path, body, headers)
        response = connection.getresponse()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        self.end_headers()
        while chunk := response.read1(65536):
            self.wfile.write(chunk)
            self.wfile.flush()

    do_GET = do_POST = do_DELETE = forward


server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
print(server.server_port, flush=True)
server.serve_forever()
