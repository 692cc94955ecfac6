package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// What a run of operations came to.
type outcome struct {
	Operations int     `json:"operations"`
	Seconds    float64 `json:"seconds"`
	MedianMs   float64 `json:"median_ms"`
}

// Clients of govmomi, each with a session of its own, do one kind of operation on a VM of its own, again and again.
func bench(arguments []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	where := flags.String("url", "", "the server with user and password")
	kind := flags.String("operation", "snapshot", "snapshot, reconfigure, relocate or power")
	clients := flags.Int("clients", 1, "clients")
	length := flags.Duration("time", 3*time.Second, "how long")
	flags.BoolVar(&polls, "poll", false, "ask how a task is as virtbench does, before waiting for updates as govmomi does")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	server, err := url.Parse(*where)
	if err != nil || *clients < 1 {
		return fmt.Errorf("bench needs --url and at least one client: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *length+time.Minute)
	defer cancel()
	loads := make([]load, *clients)
	for i := range loads {
		if loads[i], err = prepare(ctx, server, *kind, i); err != nil {
			return err
		}
	}
	all, seconds, err := apply(ctx, loads, *length)
	if err != nil {
		return err
	}
	sort.Float64s(all)
	median := 0.0
	if len(all) > 0 {
		median = all[len(all)/2]
	}
	return json.NewEncoder(os.Stdout).Encode(outcome{Operations: len(all), Seconds: seconds, MedianMs: median})
}

// One operation, the nth of its client.
type load func(n int) error

func apply(ctx context.Context, loads []load, length time.Duration) ([]float64, float64, error) {
	var lock sync.Mutex
	var group sync.WaitGroup
	var all []float64
	var failed error
	begun := time.Now()
	for _, one := range loads {
		group.Add(1)
		go func() {
			defer group.Done()
			var own []float64
			var err error
			for n := 0; err == nil && time.Since(begun) < length && ctx.Err() == nil; n++ {
				at := time.Now()
				if err = one(n); err == nil {
					own = append(own, float64(time.Since(at).Microseconds())/1000)
				}
			}
			lock.Lock()
			defer lock.Unlock()
			all = append(all, own...)
			if err != nil {
				failed = err
			}
		}()
	}
	group.Wait()
	return all, time.Since(begun).Seconds(), failed
}

// A session, and what its client does. Of pairs such as on and off each half is an operation.
func prepare(ctx context.Context, server *url.URL, kind string, number int) (load, error) {
	client, err := govmomi.NewClient(ctx, server, true)
	if err != nil {
		return nil, err
	}
	machines, err := find.NewFinder(client.Client).VirtualMachineList(ctx, "/DC0/vm/*")
	if err != nil {
		return nil, err
	}
	if number >= len(machines) {
		return nil, fmt.Errorf("there are %d VMs only", len(machines))
	}
	vm := machines[number]
	var made *types.ManagedObjectReference
	switch kind {
	case "snapshot":
		return func(n int) error {
			if n%2 == 1 {
				reply, err := methods.RemoveSnapshot_Task(ctx, client.Client, &types.RemoveSnapshot_Task{This: *made})
				if err != nil {
					return err
				}
				return wait(ctx)(object.NewTask(client.Client, reply.Returnval), nil)
			}
			task, err := vm.CreateSnapshot(ctx, "bench", "", false, false)
			if err != nil {
				return err
			}
			info, err := result(ctx, task)
			if err != nil {
				return err
			}
			snapshot := info.Result.(types.ManagedObjectReference)
			made = &snapshot
			return nil
		}, nil
	case "reconfigure":
		return func(n int) error {
			return wait(ctx)(vm.Reconfigure(ctx, types.VirtualMachineConfigSpec{Annotation: fmt.Sprint(n)}))
		}, nil
	case "power":
		return func(n int) error {
			if n%2 == 0 {
				return wait(ctx)(vm.PowerOff(ctx))
			}
			return wait(ctx)(vm.PowerOn(ctx))
		}, nil
	case "relocate":
		hosts, err := find.NewFinder(client.Client).HostSystemList(ctx, "/DC0/host/*/*")
		if err != nil {
			return nil, err
		}
		return func(n int) error {
			host := hosts[n%len(hosts)].Reference()
			return wait(ctx)(vm.Relocate(ctx, types.VirtualMachineRelocateSpec{Host: &host}, types.VirtualMachineMovePriorityDefaultPriority))
		}, nil
	}
	return nil, fmt.Errorf("no operation %q: snapshot, reconfigure, relocate or power", kind)
}

func wait(ctx context.Context) func(*object.Task, error) error {
	return func(task *object.Task, err error) error {
		if err != nil {
			return err
		}
		_, err = result(ctx, task)
		return err
	}
}

// Whether tasks are asked for, and the pauses before each time, as crates/edge/vsphere/src/tracker.rs has them.
var (
	polls  bool
	pauses = []time.Duration{0, 4 * time.Millisecond, 16 * time.Millisecond, 64 * time.Millisecond}
)

// How a task ended.
func result(ctx context.Context, task *object.Task) (*types.TaskInfo, error) {
	if !polls {
		return task.WaitForResult(ctx)
	}
	for _, pause := range pauses {
		time.Sleep(pause)
		var now mo.Task
		err := property.DefaultCollector(task.Client()).RetrieveOne(ctx, task.Reference(), []string{"info"}, &now)
		if err != nil {
			return nil, err
		}
		switch now.Info.State {
		case types.TaskInfoStateSuccess:
			return &now.Info, nil
		case types.TaskInfoStateError:
			return nil, fmt.Errorf("the task failed: %s", now.Info.Error.LocalizedMessage)
		}
	}
	return task.WaitForResult(ctx)
}
