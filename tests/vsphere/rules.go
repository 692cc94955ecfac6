package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// Delays and faults for each method.
type rules struct {
	delays, taskDelays map[string]int
	faults             []simulator.FaultInjectionRule
}

// What the simulator calls the task of a method.
var tasks = map[string]string{
	"PowerOnVM_Task":      "PowerOn",
	"PowerOffVM_Task":     "PowerOff",
	"SuspendVM_Task":      "Suspend",
	"CloneVM_Task":        "CloneVm",
	"RelocateVM_Task":     "RelocateVm",
	"Destroy_Task":        "Destroy",
	"CreateSnapshot_Task": "CreateSnapshotEx",
	"RemoveSnapshot_Task": "RemoveSnapshot",
	"ReconfigVM_Task":     "ReconfigVm",
}

// Faults by name, beyond the simulator's own kinds.
var faults = map[string]types.BaseMethodFault{
	"InsufficientResourcesFault": &types.InsufficientResourcesFault{},
	"InvalidArgument":            &types.InvalidArgument{InvalidProperty: "spec"},
	"InvalidPowerState": &types.InvalidPowerState{
		RequestedState: types.VirtualMachinePowerStatePoweredOn,
		ExistingState:  types.VirtualMachinePowerStatePoweredOn,
	},
	"NoDiskSpace":    &types.NoDiskSpace{Datastore: "LocalDS_0"},
	"NotSupported":   &types.NotSupported{},
	"TaskInProgress": &types.TaskInProgress{},
	"Timedout":       &types.Timedout{},
}

var kinds = map[string]simulator.FaultType{
	"ManagedObjectNotFound": simulator.FaultTypeManagedObjectNotFound,
	"MethodNotFound":        simulator.FaultTypeMethodNotFound,
	"NoPermission":          simulator.FaultTypeNoPermission,
	"NotAuthenticated":      simulator.FaultTypeNotAuthenticated,
}

func milliseconds(word string) (string, int, error) {
	method, text, found := strings.Cut(word, "=")
	delay, err := time.ParseDuration(text)
	if !found || err != nil || delay < time.Millisecond {
		return "", 0, fmt.Errorf("%q is no METHOD=50ms", word)
	}
	return method, int(delay.Milliseconds()), nil
}

func put(into *map[string]int, method string, delay int) {
	if *into == nil {
		*into = make(map[string]int)
	}
	(*into)[method] = delay
}

func (r *rules) delay(word string) error {
	method, delay, err := milliseconds(word)
	if err == nil {
		put(&r.delays, method, delay)
	}
	return err
}

func (r *rules) taskDelay(word string) error {
	method, delay, err := milliseconds(word)
	if err != nil {
		return err
	}
	task, known := tasks[method]
	if !known {
		return fmt.Errorf("no task of %s is known: %s", method, names(tasks))
	}
	put(&r.taskDelays, task, delay)
	return nil
}

func (r *rules) fault(word string) error {
	method, rest, found := strings.Cut(word, "=")
	share, name, colon := strings.Cut(rest, ":")
	probability, err := strconv.ParseFloat(share, 64)
	if !found || !colon || err != nil || probability <= 0 || probability > 1 {
		return fmt.Errorf("%q is no METHOD=0.1:FAULT", word)
	}
	rule := simulator.FaultInjectionRule{
		MethodName: method, ObjectType: "*", ObjectName: "*", Probability: probability, Enabled: true, Message: name,
	}
	if kind, known := kinds[name]; known {
		rule.FaultType = kind
	} else if fault, known := faults[name]; known {
		rule.FaultType, rule.Fault = simulator.FaultTypeCustom, fault
	} else {
		return fmt.Errorf("no fault %s: %s, %s", name, names(kinds), names(faults))
	}
	r.faults = append(r.faults, rule)
	return nil
}

func (r *rules) apply(m *simulator.Model) {
	m.DelayConfig.MethodDelay = r.delays
	// A task holds the lock of its VM while it runs, not while it waits: reads of a VM are not held up by a delay.
	simulator.TaskDelay.MethodDelay = map[string]int{"LockHandoff": 0}
	for task, delay := range r.taskDelays {
		simulator.TaskDelay.MethodDelay[task] = delay
	}
	for i := range r.faults {
		m.Service.AddFaultRule(&r.faults[i])
	}
}

func names[V any](of map[string]V) string {
	all := make([]string, 0, len(of))
	for name := range of {
		all = append(all, name)
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}
