package names_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
	"kaz/internal/shadow/names"
	"kaz/internal/testkit"
)

type object = map[string]any

// web is the Service of the tests, with addresses.
func web(addresses ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	for _, a := range addresses {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
	}
	return s
}

// TestStates compares records that the provider built into ExternalDNS wrote with what kaz's webhook would write.
func TestStates(t *testing.T) {
	text := func(owner, resource string) object {
		return object{"TTL": 300, "TXTRecords": []object{{"value": []string{
			"heritage=external-dns,external-dns/owner=" + owner + ",external-dns/resource=" + resource,
		}}}}
	}
	address := func(all ...string) object {
		var list []object
		for _, a := range all {
			list = append(list, object{"ipv4Address": a})
		}
		return object{"TTL": 300, "ARecords": list}
	}
	const first, second = "203.0.113.1", "203.0.113.2"
	const record = "web.example.com A of service/shop/web"
	claimed := func(recordSet object) map[string]object {
		return map[string]object{"A/web": recordSet, "TXT/a-web": text("prod", "service/shop/web")}
	}
	edge := &networking.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge",
		Annotations: map[string]string{"external-dns.alpha.kubernetes.io/target": "lb.example.net"}}}
	for name, c := range map[string]struct {
		sets    map[string]object // by TYPE/NAME
		objects []runtime.Object
		want    map[string]string
	}{
		"as the built-in provider writes it": {claimed(address(second, first)), []runtime.Object{web(first, second)},
			map[string]string{record: ""}},
		"IPv6, and a target in an annotation": {map[string]object{
			"AAAA/web":     {"TTL": 60, "AAAARecords": []object{{"ipv6Address": "2001:db8::1"}}, "metadata": object{"team": "web"}},
			"CNAME/c":      {"TTL": 300, "CNAMERecord": object{"cname": "lb.example.net"}},
			"TXT/aaaa-web": text("prod", "service/shop/web"), "TXT/cname-c": text("prod", "ingress/shop/edge"),
		}, []runtime.Object{web("2001:db8::1"), edge}, map[string]string{
			"web.example.com AAAA of service/shop/web": "", "c.example.com CNAME of ingress/shop/edge": "",
		}},
		"of another owner, without a claim, and of objects that are not compared": {map[string]object{
			"A/web": address(first), "TXT/a-web": text("test", "service/shop/web"), "A/free": address(first),
			"A/route": address(first), "TXT/a-route": text("prod", "httproute/shop/web"),
		}, []runtime.Object{web(second)}, map[string]string{}},
		"another address": {claimed(address(first)), []runtime.Object{web(second)},
			map[string]string{record: "PUT A web.example.com if unchanged: "}},
		"an object without an address": {claimed(address(first)), []runtime.Object{web()},
			map[string]string{record: "DELETE A web.example.com if unchanged: "}},
		"a claim without its record": {map[string]object{"TXT/a-web": text("prod", "service/shop/web")}, []runtime.Object{web(first)},
			map[string]string{record: "PUT A web.example.com if absent: "}},
		"metadata that kaz cannot read": {claimed(object{"TTL": 300, "ARecords": []object{{"ipv4Address": first}},
			"metadata": object{"kaz-set-x": "{"}}), []runtime.Object{web(second)},
			map[string]string{record: "the record set is not what ExternalDNS saw: its metadata kaz-set-x"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := testkit.NewAzure(t, core.Options{}, 0)
			zone := testkit.Group.Resource(network.DNSZones, "example.com")
			a.Put(zone, object{"location": "global"})
			for key, properties := range c.sets {
				recordType, relative, _ := strings.Cut(key, "/")
				a.Put(zone+azure.ID("/"+recordType+"/"+relative), object{"properties": properties})
			}
			a.Forget()
			verdicts, err := names.Source(fake.NewClientset(c.objects...), dns.Config{
				Azure: a.Client, Zones: dns.Zones{Groups: []azure.ID{testkit.Group}, Public: true}, Refresh: dns.Refresh,
				Options: records.Options{DefaultTTL: dns.DefaultTTL}, Log: slog.New(slog.DiscardHandler),
			}, "prod").Decide(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, v := range verdicts {
				text := strings.Join(v.Writes, "\n") + v.Refused
				if want := c.want[v.Object]; want != "" && strings.HasPrefix(text, want) {
					text = want
				}
				got[v.Object] = text
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if writes := a.Writes(); len(writes) > 0 {
				t.Errorf("written: %q", writes)
			}
		})
	}
}
