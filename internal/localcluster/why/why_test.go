package why

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	fakegateway "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned/fake"

	"kaz/internal/azure"
	"kaz/internal/localazure/web"
)

// program returns a program that does what a shell script says.
func program(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kaz")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func explainerOf(e *explained) *Explainer {
	var x Explainer
	x.running.Store(e)
	return &x
}

func TestWhyExplains(t *testing.T) {
	if _, err := new(Explainer).Explain(t.Context(), web.Subject{}); !errors.Is(err, errNotUp) {
		t.Errorf("%v, want %v", err, errNotUp)
	}
	e := &explained{dir: t.TempDir(), environment: []string{"PATH=/usr/bin:/bin", "IDENTITY_ENDPOINT=here"}, gateway: []string{"--gateway-id=/g"}}
	for name, c := range map[string]struct {
		script, want, err string
	}{
		"pending":  {`echo '{"title":"'"$IDENTITY_ENDPOINT $*"'"}'; exit 2`, "here explain service --dir=" + e.dir + " --output=picture -- default/web", ""},
		"refused":  {`echo '{"title":"refused"}'; echo "kaz: not as asked for: default/web" >&2; exit 1`, "refused", ""},
		"failed":   {`echo "kaz: there is no Service default/web" >&2; exit 1`, "", "there is no Service default/web"},
		"silent":   {`exit 3`, "", "kaz explain: exit status 3"},
		"no JSON":  {`echo text`, "", "kaz explain: invalid character 'e' in literal true (expecting 'r')"},
		"too long": {`yes | head -c 20000000`, "", "kaz explain: invalid character 'y' looking for beginning of value"},
	} {
		e.program = program(t, c.script)
		p, err := explainerOf(e).Explain(t.Context(), web.Subject{Kind: "service", Name: "default/web"})
		if p.Title != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %q, %v; want %q, %q", name, p.Title, err, c.want, c.err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.program = program(t, "sleep 60")
	if _, err := explainerOf(e).Explain(ctx, web.Subject{Kind: "service", Name: "a/b"}); err == nil {
		t.Error("it went on after the end of its context")
	}
}

func TestWhyArguments(t *testing.T) {
	e := &explained{dir: "/d", gateway: []string{"--gateway-id=/g"}}
	for of, want := range map[*web.Subject]string{
		{Kind: "ingress", Name: "a/b"}:                          "explain ingress --dir=/d --output=picture --gateway-id=/g -- a/b",
		{Kind: "nodegroup", Name: "pool"}:                       "explain nodegroup --dir=/d --output=picture -- pool",
		{Kind: "nodegroup", Name: "pool", Limits: "0:9"}:        "explain nodegroup --dir=/d --output=picture --nodes=0:9:pool -- pool",
		{Kind: "name", Name: "a.b", Groups: []string{"x", "y"}}: "explain name --dir=/d --output=picture --zone-resource-group=x --zone-resource-group=y -- a.b",
	} {
		if got := strings.Join(e.arguments(*of), " "); got != want {
			t.Errorf("%+v: %s, want %s", of, got, want)
		}
	}
}

func TestWhyObjects(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	e := &explained{
		kube: fake.NewClientset(
			&corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
			&corev1.Service{ObjectMeta: meta("inner"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}},
			&corev1.PersistentVolumeClaim{ObjectMeta: meta("data")}, &networking.Ingress{ObjectMeta: meta("site")}),
		api: fakegateway.NewSimpleClientset(&gatewayv1.HTTPRoute{ObjectMeta: meta("route")}),
	}
	// Given to NewClientset, it would be one of the "gatewaies".
	_, err := e.api.GatewayV1().Gateways("shop").Create(t.Context(), &gatewayv1.Gateway{ObjectMeta: meta("gate")}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"service shop/web", "volume shop/data"},
		{"service shop/web", "volume shop/data", "ingress shop/site", "gateway shop/gate", "httproute shop/route"},
	} {
		all, err := explainerOf(e).Objects(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range all {
			got = append(got, s.Kind+" "+s.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		e.gateway = []string{"--gateway-id=/g"}
	}
	if _, err := new(Explainer).Objects(t.Context()); !errors.Is(err, errNotUp) {
		t.Errorf("%v, want %v", err, errNotUp)
	}
}

func TestGatewayFlags(t *testing.T) {
	for want, c := range map[string]Cluster{
		"":                                      {Answers: "kaz/answers"},
		"--gateway-id=/a":                       {Gateways: []azure.ID{"/a"}},
		"--gateway-id=/a --answers-service=n/s": {Gateways: []azure.ID{"/a"}, Answers: "n/s"},
		"--gateway-id=/a --further-gateway-ids=/b,/c": {Gateways: []azure.ID{"/a", "/b", "/c"}},
	} {
		if got := strings.Join(gatewayFlags(c), " "); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
