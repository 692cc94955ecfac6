"""A fake Proxmox VE for virtbench's tests: fakepve, with the operations that it answers and does not do.

    python serve.py guests.json --port 8006 --cert certificate.pem --key key.pem --seconds 0

It listens on 127.0.0.1, as root@pam with the password of the environment's PVE_PASS. What differs from the published API is in README.md.
"""

import argparse
import asyncio
import json
import os

from fakepve import FakePve
from fakepve.model import PveError


class Cluster(FakePve):
    """A cluster whose VMs move."""

    def _routes_qemu(self):
        moved = ('POST', '/nodes/{node}/qemu/{vmid}/migrate', self._move)
        return super()._routes_qemu() + [moved]

    async def _move(self, values, user):
        vm = self.find(values['node'], values['vmid'])
        target = values['target']
        if target == vm.node:
            raise PveError(400, 'Parameter verification failed.', {'target': 'target is local node.'})
        if target not in self.nodes:
            raise PveError(500, "no such cluster node '{0}'".format(target))
        if vm.status == 'running' and not values.get('online'):
            raise PveError(500, "can't migrate running VM without --online")
        self.need_quorum()
        return await self.migrate(vm.vmid, target, secs=1, user=user)


async def serve(args):
    pve = Cluster(user='root@pam', password=os.environ['PVE_PASS'], host='127.0.0.1', port=args.port)
    pve.time_scale = args.seconds
    for node in args.nodes.split(','):
        pve.add_node(node)
    with open(args.guests) as guests:
        for guest in json.load(guests)['guests']:
            vm = pve.add_vm(guest['vmid'], guest['name'], node=guest.get('node', 'pve1'),
                            status=guest.get('status', 'stopped'), config=guest.get('config', {}),
                            template=guest.get('template', False), lock=guest.get('lock'))
            for key in ('start_secs', 'stop_secs', 'start_error', 'ha_state', 'agent'):
                if key in guest:
                    setattr(vm, key, guest[key])
    for token in args.tokens.split(','):
        if token:
            pve.apitokens['root@pam!' + token] = os.environ['PVE_PASS']
    await pve.start(args.cert, args.key)
    print('listening', flush=True)
    await asyncio.Event().wait()


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument('guests')
parser.add_argument('--port', type=int, required=True)
parser.add_argument('--cert', required=True)
parser.add_argument('--key', required=True)
parser.add_argument('--nodes', default='pve1,pve2')
parser.add_argument('--tokens', default='bench')
parser.add_argument('--seconds', type=float, default=1.0, help='how long a second of its own takes')
asyncio.run(serve(parser.parse_args()))
