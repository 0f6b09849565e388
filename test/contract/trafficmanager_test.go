package contract

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/trafficmanager/armtrafficmanager"
	"github.com/miekg/dns"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/traffic"
	"kaz/internal/localazure/plane/zones"
)

// The official client makes a profile with two endpoints. When the first one fails, DNS answers with the second one.
func TestTrafficManagerFailsOver(t *testing.T) {
	e := build(t, core.Options{})
	a := connect(t, &judge{TB: t, next: e.Transport()}, "https://management.local")
	a.Emulator = e
	a.group()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	a.must(err)
	at, err := netip.ParseAddrPort(l.Addr().String())
	a.must(err)
	second, err := config.Listen(t.Context(), "tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), at.Port()).String())
	a.must(err)
	first := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	first.Listener.Close()
	first.Listener = l
	first.Start()
	other := httptest.NewUnstartedServer(first.Config.Handler)
	other.Listener.Close()
	other.Listener = second
	other.Start()
	defer other.Close()
	after := func(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }
	probes := traffic.Start(t.Context(), traffic.Options{Azure: a.Emulator, After: after, Log: slog.New(slog.DiscardHandler)})
	defer probes.Close()

	c := clients(a, armtrafficmanager.NewClientFactory)
	endpoint := func(name, target string) *armtrafficmanager.Endpoint {
		return &armtrafficmanager.Endpoint{Name: new(name), Type: new("Microsoft.Network/trafficManagerProfiles/externalEndpoints"),
			Properties: &armtrafficmanager.EndpointProperties{Target: new(target)}}
	}
	made, err := c.NewProfilesClient().CreateOrUpdate(a.Context(), group, "tm", armtrafficmanager.Profile{Location: new("global"),
		Properties: &armtrafficmanager.ProfileProperties{
			TrafficRoutingMethod: new(armtrafficmanager.TrafficRoutingMethodPriority),
			DNSConfig:            &armtrafficmanager.DNSConfig{RelativeName: new("mine"), TTL: new(int64(10))},
			MonitorConfig: &armtrafficmanager.MonitorConfig{Protocol: new(armtrafficmanager.MonitorProtocolHTTP), Path: new("/"),
				Port: new(int64(at.Port())), IntervalInSeconds: new(int64(10)), ToleratedNumberOfFailures: new(int64(1))},
			Endpoints: []*armtrafficmanager.Endpoint{endpoint("first", "127.0.0.1"), endpoint("second", "127.0.0.2")},
		}}, nil)
	a.must(err)
	if p := made.Properties; *p.DNSConfig.Fqdn != "mine.trafficmanager.net" || *p.MonitorConfig.TimeoutInSeconds != 9 ||
		*p.Endpoints[1].Properties.Priority != 2 {
		t.Errorf("the profile: %s, timeout %d", *p.DNSConfig.Fqdn, *p.MonitorConfig.TimeoutInSeconds)
	}
	wait := func(name string, want armtrafficmanager.EndpointMonitorStatus) {
		t.Helper()
		ctx, cancel := context.WithTimeout(a.Context(), 20*time.Second)
		defer cancel()
		for {
			got, err := c.NewEndpointsClient().Get(ctx, group, "tm", armtrafficmanager.EndpointTypeExternalEndpoints, name, nil)
			a.must(err)
			if *got.Properties.EndpointMonitorStatus == want {
				return
			}
			<-time.After(5 * time.Millisecond)
		}
	}
	server := &zones.Server{World: a.Look, At: netip.MustParseAddr("127.0.0.1"), Log: slog.New(slog.DiscardHandler)}
	answers := func(want string) {
		t.Helper()
		reply := trafficAnswer(t, server)
		if len(reply.Answer) != 1 || reply.Answer[0].String() != "mine.trafficmanager.net.\t10\tIN\tA\t"+want {
			t.Errorf("DNS answers %v, want %s", reply.Answer, want)
		}
	}
	wait("first", armtrafficmanager.EndpointMonitorStatusOnline)
	wait("second", armtrafficmanager.EndpointMonitorStatusOnline)
	answers("127.0.0.1")
	first.Close()
	wait("first", armtrafficmanager.EndpointMonitorStatusDegraded)
	answers("127.0.0.2")
	_, err = c.NewProfilesClient().Delete(a.Context(), group, "tm", nil)
	a.must(err)
}

// trafficAnswer asks the name server over UDP for the addresses of the profile.
func trafficAnswer(t *testing.T, server *zones.Server) *dns.Msg {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := config.ListenPacket(t.Context(), "udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l, p) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	query := new(dns.Msg).SetQuestion("mine.trafficmanager.net.", dns.TypeA)
	reply, _, err := (&dns.Client{Net: "udp"}).ExchangeContext(t.Context(), query, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return reply
}
