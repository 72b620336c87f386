"""A receiver of OTLP over HTTP that decodes protobuf with OpenTelemetry's own messages.

Prints its port, then one JSON object per request: the spans or metrics it contains. Ends when stdin is closed.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    return getattr(any_value, kind)


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


def spans(body):
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "resource": attributes(resource.resource.attributes),
                    "scope": scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "ms": (span.end_time_unix_nano - span.start_time_unix_nano) // 1_000_000,
                    "attributes": attributes(span.attributes),
                    "events": [event.name for event in span.events],
                    "status": span.status.code,
                }


def metrics(body):
    request = ExportMetricsServiceRequest.FromString(body)
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.histogram.data_points:
                    yield {
                        "metric": metric.name,
                        "unit": metric.unit,
                        "count": point.count,
                        "sum": point.sum,
                        "bounds": len(point.explicit_bounds),
                        "buckets": len(point.bucket_counts),
                        "counted": sum(point.bucket_counts),
                        "attributes": attributes(point.attributes),
                    }


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        decode = spans if self.path == "/v1/traces" else metrics
        assert self.headers["content-type"] == "application/x-protobuf", self.headers
        for entry in decode(body):
            entry["token"] = self.headers.get("x-token")
            print(json.dumps(entry), flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
