"""Makes servers of somebody else's on the cloud of stand.sh, within its root: fill.py COUNT. One is made and shelved by Nova; the others are copies of its
rows in Nova's databases, since two processors would build a thousand for an hour. Shelved servers have no host."""

import json
import sys
import time
import urllib.request
import uuid

import pymysql

ADDRESS, PASSWORD, LIMIT_S = "127.0.77.1", "stand-only-secret", 300
# Where a server has rows, and by which column they are its.
TABLES = [("nova", "instances", "uuid"), ("nova", "instance_info_caches", "instance_uuid"), ("nova", "instance_extra", "instance_uuid"),
          ("nova", "instance_system_metadata", "instance_uuid"), ("nova_api", "instance_mappings", "instance_uuid"),
          ("nova_api", "request_specs", "instance_uuid")]


def ask(url, token=None, body=None):
    headers = {"Content-Type": "application/json", "OpenStack-API-Version": "compute 2.90"}
    headers.update({"X-Auth-Token": token} if token else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.loads(answer.read() or b"null"), answer.headers


def becomes(url, token, status):
    until = time.monotonic() + LIMIT_S
    while ask(url, token)[0]["server"]["status"] != status:
        if time.monotonic() > until:
            sys.exit(f"fill.py: the server is not {status} after {LIMIT_S} s")
        time.sleep(0.2)


def shelved(token, services):
    flavor = next(one["id"] for one in ask(services["compute"] + "/flavors", token)[0]["flavors"] if one["name"] == "tiny")
    image = ask(services["image"] + "/v2/images?name=cirros", token)[0]["images"][0]["id"]
    server = {"name": "others", "flavorRef": flavor, "imageRef": image, "networks": "none"}
    made = ask(services["compute"] + "/servers", token, {"server": server})[0]["server"]["id"]
    url = f"{services['compute']}/servers/{made}"
    becomes(url, token, "ACTIVE")
    ask(url + "/action", token, {"shelve": None})
    becomes(url, token, "SHELVED_OFFLOADED")
    return made


def copy(server, count):
    with pymysql.connect(host=ADDRESS, user="stand", password="stand") as connection, connection.cursor() as cursor:
        for database, table, key in TABLES:
            cursor.execute(f"SHOW COLUMNS FROM {database}.{table}")
            columns = [column[0] for column in cursor.fetchall() if column[0] != "id"]
            taken = ", ".join("c.uuid" if column == key else f"t.`{column}`" for column in columns)
            names = ", ".join(f"`{column}`" for column in columns)
            if table == TABLES[0][1]:
                cursor.execute("CREATE TEMPORARY TABLE nova.copies (uuid VARCHAR(36) PRIMARY KEY)")
                cursor.executemany("INSERT INTO nova.copies VALUES (%s)", [str(uuid.uuid4()) for _ in range(count)])
            cursor.execute(f"INSERT INTO {database}.{table} ({names}) SELECT {taken} FROM {database}.{table} t JOIN nova.copies c "
                           f"WHERE t.{key} = %s", (server,))
        connection.commit()


def main():
    count = int(sys.argv[1])
    user = {"name": "admin", "password": PASSWORD, "domain": {"id": "default"}}
    scope = {"project": {"name": "bench", "domain": {"id": "default"}}}
    login = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    token, headers = ask(f"http://{ADDRESS}:5000/v3/auth/tokens", body=login)
    services = {service["type"]: service["endpoints"][0]["url"] for service in token["token"]["catalog"] if service["endpoints"]}
    copy(shelved(headers["X-Subject-Token"], services), count - 1)
    print(f"there are {count} servers more", flush=True)


main()
