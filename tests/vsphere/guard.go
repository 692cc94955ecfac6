package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

const cookieName = "vmware_soap_session"

var taskOfReply = regexp.MustCompile(`type="Task"[^>]*>([^<]+)<`)

const notAuthenticated = `<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault>
<faultcode>ServerFaultCode</faultcode><faultstring>The session is not authenticated.</faultstring>
<detail><NotAuthenticatedFault xmlns="urn:vim25" xsi:type="NotAuthenticated">
<object type="Folder">group-d1</object><privilegeId>System.View</privilegeId></NotAuthenticatedFault></detail>
</soapenv:Fault></soapenv:Body></soapenv:Envelope>`

// Stands before the simulator: ends sessions after their lifetime, and lets one VM at a time be cloned, because clones
// at the same time into one folder crash it.
type gate struct {
	inner    http.Handler
	model    *simulator.Model
	lifetime time.Duration
	cloning  chan struct{}

	lock   sync.Mutex
	begins map[string]time.Time
}

func guard(m *simulator.Model, inner http.Handler, lifetime time.Duration) http.Handler {
	return &gate{inner: inner, model: m, lifetime: lifetime, cloning: make(chan struct{}, 1), begins: make(map[string]time.Time)}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if g.expired(r) && !bytes.Contains(body, []byte("<Login ")) && !bytes.Contains(body, []byte("<RetrieveServiceContent ")) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprint(w, notAuthenticated)
		return
	}
	if bytes.Contains(body, []byte("<CloneVM_Task ")) {
		g.clone(w, r)
		return
	}
	g.inner.ServeHTTP(&noted{ResponseWriter: w, gate: g}, r)
}

// A session that the gate has not seen begin has ended before the simulator was restarted.
func (g *gate) expired(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	begun, known := g.begins[cookie.Value]
	over := !known || (g.lifetime > 0 && time.Since(begun) > g.lifetime)
	if over {
		delete(g.begins, cookie.Value)
		r.Header.Del("Cookie")
	}
	return over
}

// The next clone is accepted when the task of this one is done.
func (g *gate) clone(w http.ResponseWriter, r *http.Request) {
	g.cloning <- struct{}{}
	held := &kept{ResponseWriter: w}
	g.inner.ServeHTTP(held, r)
	found := taskOfReply.FindSubmatch(held.body.Bytes())
	if found == nil {
		<-g.cloning
		return
	}
	reference := types.ManagedObjectReference{Type: "Task", Value: string(found[1])}
	go func() {
		defer func() { <-g.cloning }()
		if task, is := g.model.Map().Get(reference).(*simulator.Task); is {
			task.Wait()
		}
	}()
}

// Notes when a session begins.
type noted struct {
	http.ResponseWriter
	gate *gate
}

func (n *noted) WriteHeader(status int) {
	reply := http.Response{Header: n.Header()}
	for _, cookie := range reply.Cookies() {
		if cookie.Name == cookieName {
			n.gate.lock.Lock()
			n.gate.begins[cookie.Value] = time.Now()
			n.gate.lock.Unlock()
		}
	}
	n.ResponseWriter.WriteHeader(status)
}

type kept struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (k *kept) Write(some []byte) (int, error) {
	k.body.Write(some)
	return k.ResponseWriter.Write(some)
}
