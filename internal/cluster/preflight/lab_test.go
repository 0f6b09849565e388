package preflight

import (
	"net/http"
	"strings"
	"testing"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/record"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit/clustertest"
)

// lab is a local Azure and an engine for it.
type lab struct {
	deploy.Deployer
	azure  *clustertest.Azure
	client *arm.Client
	t      *testing.T
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, azure: clustertest.Start(t, core.Options{})}
	l.connect(l.azure.Transport())
	return l
}

func (l *lab) connect(way http.RoundTripper) {
	l.t.Helper()
	l.client = clustertest.Client(l.t, way)
	l.Deployer = deploy.Deployer{Store: record.Store{Azure: l.client}}
}

// writes are the requests since the last call that change something.
func (l *lab) writes() []string {
	var all []string
	for _, r := range l.azure.Requests() {
		if r.Writes() {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}

// put writes documents, each as "ID BODY".
func (l *lab) put(documents ...string) {
	l.t.Helper()
	for _, one := range documents {
		id, body, _ := strings.Cut(one, " ")
		if _, err := l.client.Put(l.t.Context(), azure.Write{ID: azure.ID(id), Body: azure.Document(body)}); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *lab) deploy(p cluster.Plan) {
	l.t.Helper()
	if _, err := l.Deploy(l.t.Context(), p, func([]byte) error { return nil }); err != nil {
		l.t.Fatal(err)
	}
}

func example(t *testing.T, change func(*definition.Definition), files ...string) cluster.Plan {
	t.Helper()
	return clustertest.Plan(t, change, files...)
}
