"""Operations by proxmoxer, each client a process with a VM of its own, until their tasks are over; a line of JSON says what they came to.

    python bench.py --port 8006 --kind power --clients 8 --seconds 2

The password of root@pam is in the environment's PVE_PASS. VMs are numbered from 100 on.
"""

import argparse
import json
import multiprocessing
import os
import time

import urllib3
from proxmoxer import ProxmoxAPI

urllib3.disable_warnings()


def client(port, kind, vmid, seconds, begin, out):
    api = ProxmoxAPI('127.0.0.1', port=port, user='root@pam', password=os.environ['PVE_PASS'], verify_ssl=False)
    vm = api.nodes('pve1').qemu(vmid)
    tasks = api.nodes('pve1').tasks
    begin.wait()
    begun, spans, number = time.monotonic(), [], 0
    while time.monotonic() - begun < seconds or number % 2:
        at = time.monotonic()
        if kind == 'power':
            task = vm.status.start.post() if number % 2 == 0 else vm.status.stop.post()
        elif kind == 'snapshot':
            task = vm.snapshot.post(snapname='bench') if number % 2 == 0 else vm.snapshot('bench').delete()
        else:
            task = vm.config.post(description=str(number))
        while True:
            status = tasks(task).status.get()
            if status['status'] == 'stopped':
                break
            time.sleep(0.01)
        if status['exitstatus'] != 'OK':
            raise RuntimeError(status['exitstatus'])
        spans.append(time.monotonic() - at)
        number += 1
    out.put((spans, time.monotonic() - begun))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--kind', choices=('power', 'snapshot', 'reconfigure'), required=True)
    parser.add_argument('--clients', type=int, required=True)
    parser.add_argument('--seconds', type=float, required=True)
    args = parser.parse_args()
    begin, out = multiprocessing.Barrier(args.clients), multiprocessing.Queue()
    clients = [multiprocessing.Process(target=client, args=(args.port, args.kind, 100 + i, args.seconds, begin, out))
               for i in range(args.clients)]
    for one in clients:
        one.start()
    told = [out.get(timeout=120) for _ in clients]
    for one in clients:
        one.join()
    spans = sorted(span for spans, _ in told for span in spans)
    print(json.dumps({'operations': len(spans), 'seconds': max(length for _, length in told),
                      'mean_ms': 1e3 * sum(spans) / len(spans)}))


main()
