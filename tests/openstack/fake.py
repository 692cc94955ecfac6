"""A small OpenStack for tests: Keystone, Nova, Glance, Cinder and Neutron in one process, as far as virtbench calls them. What it answers has the shape of what the real
services of `scripts/openstack-stand.sh` answer; README.md says what differs. It prints its port, and ends with its standard input.

POST /control changes how it behaves: {"seconds": S} how long a task takes, {"expire": true} ends all tokens, {"lifetime": S} of later ones, {"refuse":
[{"path": PART, "status": N, "message": TEXT, "times": N, "retry_after": S}]}, {"stuck": true} tasks never end, {"hosts": N}, {"fill": N} makes servers, {"services": [KIND]} is what the catalogue has from the next login on, {"floating": ADDRESS} gives servers a
floating address, {"events": false} shows those of actions to nobody, {"hold": {"method": M, "what":
PART, "when": "asked" | "done" | "answered"}} has the next such call hang, undone or done, or answers it and is stuck from then on; it tells whether it has come. With the arguments CERTIFICATE and KEY it speaks TLS.
"""

import json
import re
import ssl
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LOCK = threading.RLock()
STATE = {"seconds": 0.0, "lifetime": 3600, "refuse": [], "stuck": False, "hosts": 2, "console": True, "quota": None, "floating": None, "events": True, "hold": None,
         "services": ["compute", "image", "network", "volumev3"]}
TOKENS, SERVERS, IMAGES, VOLUMES, ACTIONS, REMOVED = {}, {}, {}, {}, {}, []
NETWORKS = [{"id": "n1", "name": "private"}, {"id": "n2", "name": "twice"}, {"id": "n3", "name": "twice"}]
FLAVORS = [{"id": "f1", "name": "tiny", "ram": 64, "disk": 0, "vcpus": 1}, {"id": "f2", "name": "small", "ram": 128, "disk": 0, "vcpus": 1}]
# Each user's role has its name.
USERS = {"admin": "test-only-secret", "member": "test-only-secret", "reader": "test-only-secret"}
# What Nova asks an administrator's role for.
ADMINISTRATORS = {"os-services": "os-services:list", "os-migrateLive": "os-migrate-server:migrate_live", "migrate": "os-migrate-server:migrate"}


def stamp(at=None, fraction=False):
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return text + ".000000" if fraction else text + "Z"


AFTER = {"creating": "available", "attaching": "in-use", "detaching": "available", "deleting": "deleted"}
IMAGES["i1"] = {"id": "i1", "name": "cirros", "status": "active", "owner": "elsewhere"}


class Refusal(Exception):
    def __init__(self, status, message, headers=()):
        self.status, self.message, self.headers = status, message, headers


def settle(server):
    """Ends what is being done with a server, once its time has come."""
    task = server.get("doing")
    if not task or STATE["stuck"] or time.time() < task["until"]:
        return
    server["doing"] = None
    server["task"] = None
    server["updated"] = time.time()
    task["then"](server)
    for event in ACTIONS.get(task["request"], {}).get("events", []):
        if event["finish_time"]:
            continue
        event["finish_time"] = stamp(fraction=True)
        event["result"] = "Success"


def do(server, request, action, task, then, status=None, event=None):
    settle(server)
    if server["task"]:
        raise Refusal(409, f"Cannot '{action}' instance {server['id']} while it is in task_state {server['task']}")
    server["task"], server["updated"] = task, time.time()
    if status:
        server["status"] = status
    server["doing"] = {"until": time.time() + STATE["seconds"], "then": then, "request": request}
    begun = stamp(fraction=True)
    events = [{"event": event or f"compute_{action}", "start_time": begun, "finish_time": None, "result": None, "host": server["host"]}]
    ACTIONS[request] = {"action": action, "request_id": request, "start_time": begun, "updated_at": begun, "message": None, "events": events,
                        "server": server["id"]}


def note(server, request, action, seconds):
    """Keeps a record of an action that leaves the server's task as it is."""
    begun, over = stamp(fraction=True), stamp(time.time() + seconds, fraction=True)
    event = {"event": f"compute_{action}", "start_time": begun, "finish_time": over, "result": "Success", "host": server["host"]}
    ACTIONS[request] = {"action": action, "request_id": request, "start_time": begun, "updated_at": over, "message": None, "events": [event],
                        "server": server["id"]}


def rights(role, command, path, body):
    """Refuses what a role may not do, in Nova's and Glance's words: a reader changes nothing, and some things are administrators'."""
    name = next(iter(body), "") if path.endswith("/action") and body else path.split("/")[-1]
    if role != "admin" and name in ADMINISTRATORS:
        raise Refusal(403, f"Policy doesn't allow os_compute_api:{ADMINISTRATORS[name]} to be performed.")
    if role == "reader" and command != "GET":
        if path.startswith("/image/"):
            raise Refusal(403, "You are not authorized to complete add_image action.")
        raise Refusal(403, f"Policy doesn't allow os_compute_api:servers:{'create' if name == 'servers' else name} to be performed.")


def needs(server, action, *states):
    settle(server)
    if server["status"] not in states:
        raise Refusal(409, f"Cannot '{action}' instance {server['id']} while it is in vm_state {server['status'].lower()}")


def remove(server):
    """Lists of changes have it still."""
    SERVERS.pop(server["id"])
    for volume in VOLUMES.values():
        if volume["server"] == server["id"]:
            volume.update(status="available", server=None)
    server["status"] = "DELETED"
    REMOVED.append(server)


def becomes(status):
    return lambda server: server.update(status=status)


def act(server, request, name, value):
    state = server["status"]
    simple = {
        "os-start": (["SHUTOFF"], "powering-on", "ACTIVE", "start_instance"), "os-stop": (["ACTIVE"], "powering-off", "SHUTOFF", "stop_instance"),
        "suspend": (["ACTIVE"], "suspending", "SUSPENDED", "suspend_instance"), "resume": (["SUSPENDED"], "resuming", "ACTIVE", "resume_instance"),
        "shelve": (["ACTIVE", "SHUTOFF"], "shelving", "SHELVED_OFFLOADED", "shelve_instance"),
        "unshelve": (["SHELVED_OFFLOADED"], "spawning", "ACTIVE", "unshelve_instance"),
    }
    if name in simple:
        states, task, after, event = simple[name]
        needs(server, name, *states)
        do(server, request, name, task, becomes(after), event=f"compute_{event}")
    elif name == "reboot":
        needs(server, name, "ACTIVE")
        do(server, request, name, "rebooting_hard", becomes("ACTIVE"), "HARD_REBOOT")
    elif name == "rebuild":
        needs(server, name, "ACTIVE", "SHUTOFF")
        do(server, request, name, "rebuilding", becomes(state), "REBUILD")
    elif name == "os-migrateLive":
        needs(server, name, "ACTIVE")
        do(server, request, name, "migrating", lambda it: it.update(status="ACTIVE", host="two" if it["host"] == "one" else "one"), "MIGRATING")
        if STATE["hosts"] < 2:
            server["doing"]["then"] = becomes("ACTIVE")
            ACTIONS[request].update(message="Error")
            ACTIONS[request]["events"] = [{"event": "conductor_live_migrate_instance", "start_time": stamp(fraction=True),
                                           "finish_time": stamp(fraction=True), "result": "Error", "details": "No valid host was found."}]
    elif name in ("migrate", "resize"):
        needs(server, name, "ACTIVE", "SHUTOFF")
        server["before"] = state
        if name == "resize":
            server["flavor"] = value["flavorRef"]
        do(server, request, name, "resize_prep", becomes("VERIFY_RESIZE"), "RESIZE")
    elif name == "confirmResize":
        needs(server, name, "VERIFY_RESIZE")
        do(server, request, name, None, becomes(server["before"]))
    elif name == "createImage":
        needs(server, name, "ACTIVE", "SHUTOFF")
        image = {"id": str(uuid.uuid4()), "name": value["name"], "status": "queued", "owner": "p1", "instance_uuid": server["id"], **value["metadata"]}
        IMAGES[image["id"]] = image
        do(server, request, name, "image_snapshot", lambda _: image.update(status="active"))
        return {"image_id": image["id"]}
    elif name == "os-getConsoleOutput":
        if not STATE["console"]:
            raise Refusal(403, "Policy doesn't allow os_compute_api:os-console-output to be performed.")
        return {"output": "login:"}
    else:
        raise Refusal(400, f"There is no such action: {name}")
    return None


def shown(server, role):
    settle(server)
    kept = {key: server[key] for key in ("id", "name", "status", "metadata", "description")}
    flavor = next(flavor for flavor in FLAVORS if flavor["id"] == server["flavor"])
    address = [{"addr": "127.0.0.1", "version": 4, "OS-EXT-IPS:type": "fixed"}]
    if STATE["floating"]:
        address = [{"addr": "192.0.2.1", "version": 4, "OS-EXT-IPS:type": "fixed"}, {"addr": STATE["floating"], "version": 4, "OS-EXT-IPS:type": "floating"}]
    host = {"OS-EXT-SRV-ATTR:host": server["host"]} if role == "admin" else {}
    return {**kept, "OS-EXT-STS:task_state": server["task"], **host, "fault": server.get("fault"),
            "flavor": {"original_name": flavor["name"]}, "addresses": {} if server["networks"] == "none" else {"net": address},
            "updated": stamp(server["updated"])}


def new_server(body, request):
    if STATE["quota"] is not None and len(SERVERS) >= STATE["quota"]:
        raise Refusal(403, f"Quota exceeded for instances: Requested 1, but already used {len(SERVERS)} of {STATE['quota']} instances")
    for disk in body.get("block_device_mapping_v2", [] if "imageRef" in body else [{"uuid": None}]):
        if disk["uuid"] not in IMAGES or disk["destination_type"] != "volume" or disk["volume_size"] < 1 or not disk["delete_on_termination"]:
            raise Refusal(400, "Block Device Mapping is Invalid.")
    server = {"id": str(uuid.uuid4()), "name": body["name"], "status": "BUILD", "task": None, "metadata": body.get("metadata", {}),
              "description": body.get("description"), "flavor": body["flavorRef"], "networks": body["networks"], "host": "one", "updated": time.time()}
    SERVERS[server["id"]] = server
    failed = {"code": 500, "message": "No valid host was found. There are not enough hosts available."}
    after = (lambda it: it.update(status="ERROR", fault=failed)) if STATE["hosts"] == 0 else becomes("ACTIVE")
    do(server, request, "create", "scheduling", after, event="conductor_schedule_and_build_instances")
    return server


def page(entries, query, key, base):
    entries, limit, marker = list(entries), int(query.get("limit", ["1000"])[0]), query.get("marker", [None])[0]
    if marker:
        entries = entries[1 + next(index for index, entry in enumerate(entries) if entry["id"] == marker):]
    more = len(entries) > limit
    link = {f"{key}_links": [{"rel": "next"}]} if base == "nova" else {"next": "/v2/images?marker"}
    return {key: entries[:limit], **(link if more else {})}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=None, headers=()):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        url, request = urlsplit(self.path), f"req-{uuid.uuid4()}"
        headers = [("x-openstack-request-id", request)]
        hold = STATE["hold"] if self.held_by(url.path, body) else None
        if hold and hold["when"] == "asked":
            return self.hang(hold)
        if hold and hold["when"] == "answered":
            STATE["stuck"] = True
        with LOCK:
            try:
                status, told, more = self.route(unquote(url.path).rstrip("/"), parse_qs(url.query), body, request)
            except Refusal as refusal:
                status, told, more = refusal.status, {"refusal": {"code": refusal.status, "message": refusal.message}}, refusal.headers
        if hold and hold["when"] == "done":
            return self.hang(hold)
        self.answer(status, told, [*headers, *more])
        if hold:
            hold["has_come"] = True

    def held_by(self, path, body):
        """Whether this call is the one that a test waits for."""
        hold = STATE["hold"]
        called = f"{path} {next(iter(body), '') if path.endswith('/action') and body else ''}"
        return hold and not hold.get("has_come") and hold["method"] == self.command and hold["what"] in called

    def hang(self, hold):
        """Until the test has killed the client, which is when it wants something else."""
        hold["has_come"] = True
        while STATE["hold"] is hold:
            time.sleep(0.01)
        self.close_connection = True

    do_GET = do_POST = do_DELETE = do_PATCH = handle_any

    def route(self, path, query, body, request):
        if path == "/control":
            if body.pop("expire", False):
                TOKENS.clear()
            for _ in range(body.pop("fill", 0)):
                number = len(SERVERS)
                SERVERS[str(number)] = {"id": str(number), "name": f"vm{number}", "status": "ACTIVE", "task": None, "metadata": {}, "description": None,
                                        "flavor": "f1", "networks": "none", "host": "one", "updated": 0}
            STATE.update(body)
            return 200, {"has_come": bool(STATE["hold"] and STATE["hold"].get("has_come"))}, []
        for rule in STATE["refuse"]:
            if rule["path"] in path and rule.get("method", self.command) == self.command and rule.setdefault("times", 1) > 0:
                rule["times"] -= 1
                after = [("Retry-After", str(rule["retry_after"]))] if "retry_after" in rule else []
                raise Refusal(rule["status"], rule.get("message", ""), after)
        if path == "/v3/auth/tokens":
            return self.log_in(body)
        token = TOKENS.get(self.headers.get("X-Auth-Token"))
        if not token or token["until"] < time.time():
            raise Refusal(401, "The request you have made requires authentication.")
        self.role = token["role"]
        rights(self.role, self.command, path, body)
        if path == "/network/v2.0/networks":
            wanted = [network for network in NETWORKS if all(network[key] == query[key][0] for key in ("id", "name") if key in query)]
            return 200, {"networks": [{"id": network["id"]} for network in wanted]}, []
        if path.startswith("/volume/v3/p1/volumes"):
            return self.volumes(path.removeprefix("/volume/v3/p1/volumes").lstrip("/"), query, body)
        if path.startswith("/image/v2/images"):
            return self.images(path.removeprefix("/image/v2/images").lstrip("/"), query, body)
        return self.nova(path.removeprefix("/compute/v2.1").lstrip("/"), query, body, request)

    def log_in(self, body):
        identity = body["auth"]["identity"]
        method = identity["methods"][0]
        if method == "password":
            user = identity["password"]["user"]
            if USERS.get(user.get("name")) != user["password"]:
                raise Refusal(401, "The request you have made requires authentication.")
        elif method == "application_credential":
            if identity[method]["secret"] != "test-only-secret":
                raise Refusal(401, "The request you have made requires authentication.")
        elif identity["token"]["id"] not in TOKENS:
            raise Refusal(401, "The request you have made requires authentication.")
        text, until = f"token-{uuid.uuid4()}", time.time() + STATE["lifetime"]
        TOKENS[text] = {"until": until, "role": identity["password"]["user"]["name"] if method == "password" else "admin"}
        base = f"{self.server.scheme}://127.0.0.1:{self.server.server_port}"
        ends = {"compute": "/compute/v2.1", "image": "/image", "network": "/network", "volumev3": "/volume/v3/p1"}
        ends = [(kind, ends[kind]) for kind in STATE["services"]]
        catalog = [{"type": kind, "endpoints": [{"interface": "public", "region_id": "One", "url": base + path}]} for kind, path in ends]
        token = {"catalog": catalog, "project": {"id": "p1"}, "expires_at": stamp(until)}
        return 201, {"token": token}, [("X-Subject-Token", text)]

    def volumes(self, path, query, body):
        for volume in VOLUMES.values():
            if volume["status"] in AFTER and not STATE["stuck"] and time.time() >= volume["until"]:
                volume["status"] = AFTER[volume["status"]]
        for name in [name for name, volume in VOLUMES.items() if volume["status"] == "deleted"]:
            del VOLUMES[name]
        if path in ("", "detail") and self.command == "GET":
            return 200, page(VOLUMES.values(), query, "volumes", "nova"), []
        if not path:
            asked = body["volume"]
            volume = {"id": str(uuid.uuid4()), "status": "creating", "server": None, "until": time.time() + STATE["seconds"], "name": asked["name"],
                      "description": asked["description"], "metadata": asked["metadata"], "size": asked["size"]}
            VOLUMES[volume["id"]] = volume
            return 202, {"volume": volume}, []
        volume = VOLUMES.get(path)
        if not volume:
            raise Refusal(404, f"Volume {path} could not be found.")
        if self.command == "DELETE":
            if volume["status"] != "available":
                raise Refusal(400, "Invalid volume: Volume status must be available or error or error_restoring and must not be migrating or attached.")
            volume.update(status="deleting", until=time.time() + STATE["seconds"])
            return 202, None, []
        return 200, {"volume": volume}, []

    def attachments(self, server, request, path, body):
        """Of volumes and of ports: Nova answers once a port is there, and before a volume is."""
        kind, name = path[0], path[1] if len(path) > 1 else None
        if kind == "os-interface":
            ports = server.setdefault("ports", {})
            if self.command == "POST":
                wanted = body["interfaceAttachment"].get("net_id", "n1")
                if server["networks"] == "none" or all(wanted != network["id"] for network in NETWORKS):
                    raise Refusal(400, f"Network {wanted} could not be found.")
                port = str(uuid.uuid4())
                ports[port] = {"port_id": port, "net_id": wanted, "port_state": "ACTIVE"}
                note(server, request, "attach_interface", 0)
                return 200, {"interfaceAttachment": ports[port]}, []
            if name not in ports:
                raise Refusal(404, f"Instance {server['id']} does not have a port with id {name}")
            if self.command == "GET":
                if ports[name].get("until", time.time() + 1) <= time.time():
                    del ports[name]
                    raise Refusal(404, f"Instance {server['id']} does not have a port with id {name}")
                return 200, {"interfaceAttachment": ports[name]}, []
            ports[name]["until"] = time.time() + STATE["seconds"]
            note(server, request, "detach_interface", STATE["seconds"])
            return 202, None, []
        volume = VOLUMES.get(name or body["volumeAttachment"]["volumeId"])
        wanted, then, action = ("in-use", "detaching", "detach_volume") if name else ("available", "attaching", "attach_volume")
        if not volume or volume["status"] != wanted or (name and volume["server"] != server["id"]):
            raise Refusal(404 if not volume else 400, f"Invalid volume: status must be {wanted}.")
        volume.update(status=then, until=time.time() + STATE["seconds"], server=None if name else server["id"])
        note(server, request, action, STATE["seconds"])
        return (202, None, []) if name else (200, {"volumeAttachment": {"volumeId": volume["id"]}}, [])

    def images(self, path, query, body):
        if not path and self.command == "GET":
            wanted = [image for image in IMAGES.values() if all(image.get(key) == query[key][0] for key in ("owner", "status") if key in query)]
            return 200, page(wanted, query, "images", "glance"), []
        if not path:
            image = {"id": str(uuid.uuid4()), "status": "queued", "owner": "p1", **body}
            IMAGES[image["id"]] = image
            return 201, image, []
        if path not in IMAGES:
            raise Refusal(404, f"No image found with ID {path}")
        image = IMAGES[path]
        for server in SERVERS.values():
            settle(server)
        if self.command == "DELETE":
            del IMAGES[path]
            return 204, None, []
        if self.command == "PATCH":
            for change in body:
                image[change["path"].lstrip("/")] = change["value"]
        return 200, image, []

    def nova(self, path, query, body, request):
        if not path:
            return 200, {"version": {"version": "2.93", "min_version": "2.1"}}, []
        if path == "flavors/detail":
            return 200, {"flavors": FLAVORS}, []
        if path == "os-services":
            return 200, {"services": [{"state": "up", "status": "enabled"}] * STATE["hosts"]}, []
        if path == "servers/detail":
            since = query.get("changes-since", [None])[0]
            for server in list(SERVERS.values()):
                settle(server)
            found = [shown(server, self.role) for server in [*SERVERS.values(), *(REMOVED if since else [])]]
            if since:
                found = [server for server in found if server["updated"] >= since]
            if "name" in query:
                found = [server for server in found if re.search(query["name"][0], server["name"])]
            return 200, page(found, query, "servers", "nova"), []
        if path == "servers":
            return 202, {"server": {"id": new_server(body["server"], request)["id"], "adminPass": "not-to-be-told"}}, []
        _, name, *rest = path.split("/")
        server = SERVERS.get(name)
        if not server:
            raise Refusal(404, f"Instance {name} could not be found.")
        settle(server)
        if name not in SERVERS:
            raise Refusal(404, f"Instance {name} could not be found.")
        if not rest and self.command == "GET":
            return 200, {"server": shown(server, self.role)}, []
        if not rest:
            server["task"] = None
            do(server, request, "delete", "deleting", remove)
            if STATE["seconds"] == 0:
                settle(server)
            return 204, None, []
        if rest[0] in ("os-volume_attachments", "os-interface"):
            return self.attachments(server, request, rest, body)
        if rest[0] == "metadata":
            server["metadata"].update(body["metadata"])
            return 200, {"metadata": server["metadata"]}, []
        if rest[0] == "remote-consoles":
            return 200, {"remote_console": {"url": "http://127.0.0.1/?token=not-to-be-told"}}, []
        if rest[0] == "os-instance-actions":
            action = ACTIONS.get(rest[1])
            if not action:
                raise Refusal(404, f"Action {rest[1]} not found")
            hidden = ("host", "details") if self.role != "admin" else ()
            events = [{key: value for key, value in event.items() if key not in hidden} for event in action["events"]]
            return 200, {"instanceAction": {**action, "events": events if STATE["events"] else None}}, []
        told = act(server, request, *next(iter(body.items())))
        return 200 if told else 202, told, []


class Server(ThreadingHTTPServer):
    # By default the kernel keeps five connections that a busy host has not accepted yet, and drops others.
    request_queue_size = 128


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    server.scheme = "https" if len(sys.argv) > 1 else "http"
    if len(sys.argv) > 1:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*sys.argv[1:3])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
