// A vCenter of govmomi's simulator for tests, and govmomi's client for comparisons.
//
//	virtbench-vsphere simulate --hosts 10 --vms 100 --ready FILE
//	virtbench-vsphere bench --url https://user:pass@127.0.0.1:PORT/sdk --operation snapshot --clients 8
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fail("say what to do: simulate or bench")
	}
	var err error
	switch os.Args[1] {
	case "simulate":
		err = simulate(os.Args[2:])
	case "bench":
		err = bench(os.Args[2:])
	default:
		fail("unknown word %q: simulate or bench", os.Args[1])
	}
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "virtbench-vsphere: "+format+"\n", values...)
	os.Exit(2)
}
