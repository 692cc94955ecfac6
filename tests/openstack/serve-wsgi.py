"""Serves the WSGI program of a service, or, as `nothing`, a network service that has no network: serve-wsgi.py PROGRAM|nothing ADDRESS PORT."""

import importlib.machinery
import importlib.util
import json
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


def nothing(environ, start_response):
    """Nova asks for ports and extensions also of servers without a network."""
    name = environ["PATH_INFO"].rstrip("/").rsplit("/", 1)[-1].removesuffix(".json")
    told = {"quota": {"port": -1, "network": -1}} if "/quotas/" in environ["PATH_INFO"] else {name.replace("-", "_"): []}
    body = json.dumps(told).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def program(path):
    sys.argv = [path]
    loader = importlib.machinery.SourceFileLoader("service", path)
    spec = importlib.util.spec_from_loader("service", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module.application


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128


class Handler(WSGIRequestHandler):
    def log_message(self, *_):
        pass

    def address_string(self):
        return self.client_address[0]


name, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
application = nothing if name == "nothing" else program(name)
make_server(address, port, application, Server, Handler).serve_forever()
