package engine

import (
	"net/http"
	"testing"

	"kaz/internal/arm"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/record"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit/clustertest"
)

// lab is a local Azure and an engine for it.
type lab struct {
	*Engine
	azure  *clustertest.Azure
	client *arm.Client
	t      *testing.T
	said   []string
	saved  []byte
}

func newLab(t *testing.T, o core.Options) *lab {
	t.Helper()
	l := &lab{t: t, azure: clustertest.Start(t, o)}
	l.connect(l.azure.Transport())
	return l
}

func (l *lab) connect(way http.RoundTripper) {
	l.t.Helper()
	l.client = clustertest.Client(l.t, way)
	l.Engine = engineFor(l.client)
	l.Say = func(line string) { l.said = append(l.said, line) }
}

// requests are the requests since the last call, "PUT kaz-prod".
func (l *lab) requests() (writes, reads []string) {
	for _, r := range l.azure.Requests() {
		if r.Writes() {
			writes = append(writes, r.Method+" "+r.Name())
		} else if r.Method == http.MethodGet {
			reads = append(reads, r.Method+" "+r.Name())
		}
	}
	return writes, reads
}

func (l *lab) save(kubeconfig []byte) error {
	l.saved = kubeconfig
	return nil
}

func example(t *testing.T, change func(*definition.Definition), files ...string) cluster.Plan {
	t.Helper()
	return clustertest.Plan(t, change, files...)
}

func (l *lab) deploy(p cluster.Plan) deploy.Result {
	l.t.Helper()
	r, err := l.Deploy(l.t.Context(), p, l.save)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func engineFor(client *arm.Client) *Engine {
	return &Engine{Deployer: deploy.Deployer{Store: record.Store{Azure: client}}}
}
