package main

import (
	"context"
	"fmt"
	"path"
	"runtime"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// Adds hosts and VMs to clusters with one host each. The simulator's own model does the same, but waits for the next tick
// of its property collector after each: seven minutes for 10,000 VMs.
type maker struct {
	model    *simulator.Model
	client   *vim25.Client
	clusters []*object.ClusterComputeResource
}

func populate(m *simulator.Model, hosts, vms int) error {
	ctx := context.Background()
	client, err := vim25.NewClient(ctx, m.Service)
	if err != nil {
		return err
	}
	p := maker{model: m, client: client}
	for i := 0; i < m.Cluster; i++ {
		found := m.Map().FindByName(fmt.Sprintf("DC0_C%d", i), all(m, "ClusterComputeResource"))
		p.clusters = append(p.clusters, object.NewClusterComputeResource(client, found.Reference()))
	}
	for i := m.Cluster; i < hosts; i++ {
		if err := p.host(ctx, i); err != nil {
			return err
		}
	}
	pools := make([]*object.ResourcePool, len(p.clusters))
	for i, cluster := range p.clusters {
		if pools[i], err = cluster.ResourcePool(ctx); err != nil {
			return err
		}
	}
	folder := object.NewFolder(client, m.Map().Any("Datacenter").(*simulator.Datacenter).VmFolder)
	for i := 0; i < vms; i++ {
		if err := p.machine(ctx, i, folder, pools[i%len(pools)]); err != nil {
			return err
		}
	}
	return nil
}

func all(m *simulator.Model, kind string) []types.ManagedObjectReference {
	var found []types.ManagedObjectReference
	for _, entity := range m.Map().All(kind) {
		found = append(found, entity.Reference())
	}
	return found
}

// The result of a task, as soon as there is one.
func (p *maker) done(task *object.Task, err error) (types.ManagedObjectReference, error) {
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	for {
		var info types.TaskInfo
		object := p.model.Map().Get(task.Reference()).(*simulator.Task)
		p.model.Map().WithLock(&simulator.Context{}, object, func() { info = object.Info })
		switch info.State {
		case types.TaskInfoStateSuccess:
			made, _ := info.Result.(types.ManagedObjectReference)
			return made, nil
		case types.TaskInfoStateError:
			return types.ManagedObjectReference{}, fmt.Errorf("%s: %T", info.Name, info.Error.Fault)
		}
		runtime.Gosched()
	}
}

// A host, with the datastore that all share.
func (p *maker) host(ctx context.Context, number int) error {
	cluster := number % len(p.clusters)
	spec := types.HostConnectSpec{HostName: fmt.Sprintf("DC0_C%d_H%d", cluster, number/len(p.clusters))}
	made, err := p.done(p.clusters[cluster].AddHost(ctx, spec, true, nil, nil))
	if err != nil {
		return err
	}
	store, err := object.NewHostSystem(p.client, made).ConfigManager().DatastoreSystem(ctx)
	if err != nil {
		return err
	}
	shared := p.model.Map().Any("Datastore").(*simulator.Datastore)
	_, err = store.CreateLocalDatastore(ctx, shared.Name, shared.Info.GetDatastoreInfo().Url)
	return err
}

// A VM with a disk, powered on.
func (p *maker) machine(ctx context.Context, number int, folder *object.Folder, pool *object.ResourcePool) error {
	name := fmt.Sprintf("DC0_C%d_RP0_VM%d", number%len(p.clusters), number/len(p.clusters))
	config := types.VirtualMachineConfigSpec{
		Name:    name,
		GuestId: string(types.VirtualMachineGuestOsIdentifierOtherGuest),
		Files:   &types.VirtualMachineFileInfo{VmPathName: "[LocalDS_0]"},
	}
	var devices object.VirtualDeviceList
	scsi, err := devices.CreateSCSIController("pvscsi")
	if err != nil {
		return err
	}
	disk := devices.CreateDisk(scsi.(types.BaseVirtualController), types.ManagedObjectReference{},
		"[LocalDS_0] "+path.Join(name, "disk1.vmdk"))
	disk.CapacityInKB = 1 << 20
	devices = append(devices, scsi, disk)
	if config.DeviceChange, err = devices.ConfigSpec(types.VirtualDeviceConfigSpecOperationAdd); err != nil {
		return err
	}
	made, err := p.done(folder.CreateVM(ctx, config, pool, nil))
	if err != nil {
		return err
	}
	_, err = p.done(object.NewVirtualMachine(p.client, made).PowerOn(ctx))
	return err
}
