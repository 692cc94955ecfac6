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
    """A cluster whose VMs and disks move, and whose disks grow."""

    def _routes_qemu(self):
        vm = '/nodes/{node}/qemu/{vmid}'
        return super()._routes_qemu() + [('POST', vm + '/migrate', self._move), ('POST', vm + '/move_disk', self._move_disk),
                                         ('PUT', vm + '/resize', self._resize)]

    async def _agent_call(self, match, values):
        vm = self.find(values['node'], values['vmid'])
        if vm.agent is None and str(vm.config.get('agent', '0')).startswith('1'):
            vm.agent = next((one.agent for one in self.vms if one.template and one.agent), None)
        return await super()._agent_call(match, values)

    def _disk_of(self, values):
        vm = self.find(values['node'], values['vmid'])
        self._check_lock(vm)
        if values['disk'] not in vm.config:
            raise PveError(500, "disk '{0}' does not exist".format(values['disk']))
        return vm, vm.config[values['disk']]

    async def _move_disk(self, values, user):
        vm, disk = self._disk_of(values)
        source, rest = disk.split(':', 1)
        target = values['storage']
        if target not in self.storages:
            raise PveError(500, "storage '{0}' does not exist".format(target))
        if target == source:
            raise PveError(500, "you can't move to the same storage with same format")

        async def body():
            vm.config[values['disk']] = target + ':' + rest
        return await self.task(vm.node, 'qmmove', vm.vmid, user, body, vm=vm)

    async def _resize(self, values, user):
        vm, disk = self._disk_of(values)
        parts = [part for part in disk.split(',') if not part.startswith('size=')]

        async def body():
            vm.config[values['disk']] = ','.join(parts + ['size=' + values['size']])
        return await self.task(vm.node, 'resize', vm.vmid, user, body, vm=vm)

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
    pve.storages['second-lvm'] = dict(pve.storages['local-lvm'], files=set(), volumes={}, avail=1 << 30)
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
