package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kaz/internal/cluster/doctor"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/health"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/naming"
)

// put writes a key and returns how etcd refuses it.
func put(t *testing.T, c *Client, key, value string) error {
	t.Helper()
	return c.any(t.Context(), "", func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Put(ctx, key, value)
		return err
	})
}

// judged are the findings about members of etcd with machines that run.
func judged(members []inspect.EtcdMember) string {
	f := health.Facts{Cluster: "prod", Now: time.Now(), Backup: health.Backup{Name: "etcd/1.db"}}
	for _, m := range members {
		one := health.Member{Machine: health.Machine{Name: "prod-" + m.Name, Power: "running", Node: true, Ready: true}, Role: "voter", ID: m.ID,
			Healthy: m.Healthy, Fault: m.Problem, Alarms: m.Alarms, Size: m.Size, InUse: m.InUse, Quota: m.Quota}
		f.Members = append(f.Members, one)
	}
	return health.Check(f).Error()
}

// TestLostMajority checks scenario 12 with a real etcd of five members. With two members lost it takes writes, and with three
// lost it does not. The survey reports both.
func TestLostMajority(t *testing.T) {
	r, c := start(t, "cp-0", "cp-1", "cp-2", "cp-3", "cp-4")
	until(t, c, func(all []inspect.EtcdMember) bool { count, leader := healthy(all); return count == 5 && leader != "" })
	if err := put(t, c, "a", "1"); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{"cp-3", "cp-4"} {
		r.stop(lost)
	}
	left := until(t, c, func(all []inspect.EtcdMember) bool { count, leader := healthy(all); return count == 3 && leader != "" })
	if err := put(t, c, "a", "2"); err != nil {
		t.Errorf("with three of five members: %v", err)
	}
	if text := judged(left); !strings.Contains(text, "⚠ etcd: 3 of 5 members answer; etcd can lose 0 more") {
		t.Error(text)
	}
	r.stop("cp-2")
	var members []inspect.EtcdMember
	for deadline := time.After(30 * time.Second); ; {
		var err error
		members, err = c.Survey(t.Context())
		if count, _ := healthy(members); err == nil && count == 0 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("%+v %v", members, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := put(t, c, "a", "3"); err == nil {
		t.Error("etcd took a write without a majority")
	}
	if text := judged(members); len(members) != 5 || !strings.Contains(text, "✘ etcd: 0 of 5 members answer, which is no majority") ||
		!strings.Contains(text, "kaz cluster restore prod") {
		t.Errorf("%d members: %s", len(members), text)
	}
}

// TestNoSpace checks scenario 40 with a real etcd: a database that reaches its quota is found, and gets room again.
func TestNoSpace(t *testing.T) {
	const quota = 4 << 20
	_, c := startWith(t, quota, "cp-0", "cp-1", "cp-2")
	until(t, c, func(all []inspect.EtcdMember) bool { count, leader := healthy(all); return count == 3 && leader != "" })
	value := strings.Repeat("x", 200<<10)
	var err error
	for range 100 {
		if err = put(t, c, "a", value); err != nil {
			break
		}
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("the database did not become full: %v", err)
	}
	full := until(t, c, func(all []inspect.EtcdMember) bool {
		return slices.ContainsFunc(all, func(m inspect.EtcdMember) bool { return slices.Contains(m.Alarms, "NOSPACE") })
	})
	if count, _ := healthy(full); count != 3 {
		t.Errorf("%d members are healthy: a full one still answers", count)
	}
	if text := judged(full); !strings.Contains(text, "✘ alarm NOSPACE: the database of member prod-cp-") || !strings.Contains(text, "of 4 MiB") {
		t.Error(text)
	}
	c.Put = func(_ context.Context, name string, _ *os.File) (string, error) { return name, nil }
	var said []string
	d := doctor.Doctor{Engine: &engine.Engine{}, Etcd: c}
	d.Say = func(line string) { said = append(said, line) }
	if did, err := d.Fix(t.Context(), naming.Names{}); err != nil || !did {
		t.Fatalf("%v %v\n%s", did, err, strings.Join(said, "\n"))
	}
	if err := put(t, c, "a", "1"); err != nil {
		t.Errorf("after the defragmentation: %v", err)
	}
	after, err := c.Survey(t.Context())
	if err != nil || judged(after) != "" {
		t.Errorf("%v %s", err, judged(after))
	}
	for _, m := range after {
		if m.Size > quota/2 || m.Quota != quota {
			t.Errorf("%+v", m)
		}
	}
}

// TestCertificateEnd checks that the end of a member's certificate is noted when a client connects.
func TestCertificateEnd(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c := &Client{}
	config := c.noting(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, "cp-0")
	connection, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.Close()
	if end := c.end("cp-0"); !end.Equal(server.Certificate().NotAfter) || !c.end("cp-1").IsZero() {
		t.Errorf("%s, want %s", end, server.Certificate().NotAfter)
	}
}
