package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"
)

// An authority, and a certificate for 127.0.0.1 that it has signed, with its key. They are kept in a file, so that a simulator
// that is started again is still trusted.
func certificate(path string) (tls.Certificate, []byte, error) {
	kept, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if kept, err = newCertificate(); err == nil {
			err = os.WriteFile(path, kept, 0o600)
		}
	}
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pair, err := tls.X509KeyPair(kept, kept)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[1]})
	return pair, authority, nil
}

func newCertificate() ([]byte, error) {
	above, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := func(number int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(number),
			Subject:      pkix.Name{CommonName: name},
			NotBefore:    time.Now().Add(-time.Hour),
			NotAfter:     time.Now().Add(240 * time.Hour),
		}
	}
	authority := template(1, "virtbench test authority")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	signed, err := x509.CreateCertificate(rand.Reader, authority, authority, &above.PublicKey, above)
	if err != nil {
		return nil, err
	}
	leaf := template(2, "virtbench test vCenter")
	leaf.IPAddresses, leaf.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	ours, err := x509.CreateCertificate(rand.Reader, leaf, authority, &own.PublicKey, above)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, block := range []pem.Block{{Type: "CERTIFICATE", Bytes: ours}, {Type: "CERTIFICATE", Bytes: signed}, {Type: "PRIVATE KEY", Bytes: key}} {
		all = append(all, pem.EncodeToMemory(&block)...)
	}
	return all, nil
}
