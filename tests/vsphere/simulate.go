package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/vmware/govmomi/simulator"
)

// What --ready gets once the simulator answers: the certificate is its authority's.
type ready struct {
	URL         string  `json:"url"`
	Certificate string  `json:"certificate"`
	Started     float64 `json:"started_in_seconds"`
}

type options struct {
	hosts, vms     int
	listen         string
	ready          string
	user, password string
	lifetime       time.Duration
	rules          rules
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.IntVar(&o.hosts, "hosts", 4, "hosts, in clusters of at most 100")
	flags.IntVar(&o.vms, "vms", 20, "VMs, powered on")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address and port")
	flags.StringVar(&o.ready, "ready", "", "file that gets the URL and the certificate once the simulator answers")
	flags.StringVar(&o.user, "user", "user", "who may log in")
	flags.StringVar(&o.password, "password", "pass", "with which password")
	flags.DurationVar(&o.lifetime, "session-lifetime", 0, "sessions end after this time; 0: never")
	flags.Func("delay", "METHOD=50ms: the call takes this longer (may be repeated)", o.rules.delay)
	flags.Func("task-delay", "METHOD=50ms: the task that the call starts takes this longer (may be repeated)", o.rules.taskDelay)
	flags.Func("fault", "METHOD=0.1:NoPermission: this share of the calls fails (may be repeated)", o.rules.fault)
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.ready == "" || o.hosts < 1 || o.vms < 0 {
		return o, fmt.Errorf("simulate needs --ready FILE, --hosts of at least 1 and --vms of at least 0")
	}
	return o, nil
}

// Clusters of at most 100 hosts, with one host each so far.
func model(o options) *simulator.Model {
	m := simulator.VPX()
	m.Host = 0
	m.Cluster = (o.hosts + 99) / 100
	m.ClusterHost = 1
	m.Machine = 0
	m.Portgroup = 0
	return m
}

// Serves until stdin ends, so that nothing stays when whoever started it is killed.
func simulate(arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	begun := time.Now()
	log.SetOutput(io.Discard)
	m := model(o)
	defer m.Remove()
	if err := m.Create(); err != nil {
		return err
	}
	if err := populate(m, o.hosts, o.vms); err != nil {
		return err
	}
	o.rules.apply(m)
	m.Service.Listen = &url.URL{User: url.UserPassword(o.user, o.password)}
	inner := m.Service.NewServer()
	own, authority, err := certificate(o.ready + ".tls")
	if err != nil {
		return err
	}
	front := &http.Server{
		Handler:   guard(m, inner.Config.Handler, o.lifetime),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	go func() { _ = front.ServeTLS(listener, "", "") }()
	err = announce(o.ready, ready{
		URL:         fmt.Sprintf("https://%s/sdk", listener.Addr()),
		Certificate: string(authority),
		Started:     time.Since(begun).Seconds(),
	})
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = front.Shutdown(stop)
	return nil
}

// The file appears whole.
func announce(path string, what ready) error {
	bytes, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", bytes, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
